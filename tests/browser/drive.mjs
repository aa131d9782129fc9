// Drives Chromium for the tests: a JSON document a line on stdin, an answer a line on stdout. Ends when stdin does.
//   {"visit": address, "beside": number}   opens a page, with the cache of another one or a new one: {"page": number}
//   {"page": number, "call": name, "with": [...]}   calls what the page offers: {"value"} or {"error"}
// Every answer has what pages and their workers asked for over the network meanwhile, and what the console said.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const [executablePath, packages] = process.argv.slice(2);
const { chromium } = createRequire(`${packages}/`)('playwright-core');
const browser = await chromium.launch({
  executablePath,
  timeout: 0, // how long a test may take is pytest's to say
  args: [
    ...(process.getuid() === 0 ? ['--no-sandbox'] : []),
    ...['--disable-gpu', '--disable-quic', '--disable-background-networking', '--disable-component-update'],
    '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1',
  ],
});
const pages = [];
let seen = { requests: [], console: [] };

async function profile() {
  const context = await browser.newContext();
  context.setDefaultTimeout(0);
  context.on('response', (response) => {
    const request = response.request();
    seen.requests.push({
      method: request.method(),
      url: request.url(),
      range: request.headers().range ?? null,
      status: response.status(),
      headers: response.headers(),
    });
  });
  context.on('requestfailed', (request) => {
    seen.requests.push({ method: request.method(), url: request.url(), failed: request.failure().errorText });
  });
  return context;
}

async function visit(address, beside) {
  const context = beside === undefined ? await profile() : pages[beside].context();
  const page = await context.newPage();
  page.on('console', (message) => seen.console.push(message.text()));
  page.on('pageerror', (error) => seen.console.push(`${error}`));
  await page.goto(address);
  await page.waitForFunction(() => window.calls);
  return pages.push(page) - 1;
}

// What the network did arrives beside the answers of a page: whatever it said before this, it has said by then.
async function heard(page) {
  for (const worker of page.workers()) await worker.evaluate(() => null);
  await page.evaluate(() => null);
}

async function done({ visit: address, beside, page, call, with: given }) {
  if (address) return { page: await visit(address, beside) };
  try {
    return { value: await pages[page].evaluate(([name, args]) => window.calls[name](...args), [call, given]) };
  } catch (error) {
    return { error: `${error}` };
  } finally {
    await heard(pages[page]);
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await done(JSON.parse(line));
  process.stdout.write(`${JSON.stringify({ ...answer, ...seen })}\n`);
  seen = { requests: [], console: [] };
}
await browser.close();

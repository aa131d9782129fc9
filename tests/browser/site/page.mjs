// What the tests call in the page. Everything that Arco promises to pages is in the modules of docs/browser.md; here is only glue.
import * as duckdb from '@duckdb/duckdb-wasm';
import { ask, bucket, engine, openState } from './state.mjs';
import { search, trigrams, wordsOfName, wordsOfText } from './search.mjs';

let duck;
let links = 0;

const place = (path) => new URL(path, location).href;
const exact = (one) => (Number.isSafeInteger(Number(one)) ? Number(one) : `${one}`);
const plain = (value) => JSON.parse(JSON.stringify(value, (_, one) => (typeof one === 'bigint' ? exact(one) : one)));

window.calls = {
  async start() {
    duck = await engine({
      worker: place('/packages/@duckdb/duckdb-wasm/dist/duckdb-browser-eh.worker.js'),
      wasm: place('/packages/@duckdb/duckdb-wasm/dist/duckdb-eh.wasm'),
      extensions: place('/extensions'),
    });
  },
  open: (server, asked, headers) => openState(duck, server, asked, headers),
  ask: async (sql) => plain(await ask(duck, sql)),
  // A file by its link alone.
  async read(url) {
    const name = `linked-${(links += 1)}.parquet`;
    await duck.db.registerFileURL(name, url, duckdb.DuckDBDataProtocol.HTTP, false);
    return plain(await ask(duck, `SELECT count(*)::INTEGER AS rows FROM read_parquet('${name}')`));
  },
  search: async (server, namespace, query) => plain(await search(duck, server, namespace, query)),
  words: (names, sentences) => ({
    names: names.map(wordsOfName),
    sentences: sentences.map(wordsOfText),
    trigrams: names.map(trigrams),
    buckets: names.map(bucket),
  }),
  // A plain request of the page, as its status and the headers that the browser lets it see.
  async fetch(url, options) {
    const answer = await fetch(url, options);
    return { status: answer.status, headers: Object.fromEntries(answer.headers), size: (await answer.arrayBuffer()).byteLength };
  },
};

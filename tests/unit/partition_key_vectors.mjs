// A second implementation of the partition key spelling, written from the description in
// tests/fixtures/partition_keys.json alone: if two languages agree on every vector, a third one can too.
//
//     node partition_key_vectors.mjs partition_keys.json      exits 1 and prints every vector that fails

import { readFileSync } from "node:fs";

const refuse = (why) => { throw new RangeError(why); };
const codePointOrder = (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b));

function escape(text) {
  if (/\p{Surrogate}/u.test(text)) refuse("lone surrogate");
  const byte = (value) => "%" + value.toString(16).toUpperCase().padStart(2, "0");
  return text.replace(/[^A-Za-z0-9\-._~]/gu, (char) => [...Buffer.from(char)].map(byte).join(""));
}

function unescape(text) {
  if (!/^(?:[A-Za-z0-9\-._~]|%[0-9A-F]{2})*$/.test(text)) refuse("not percent-encoded");
  return decodeURIComponent(text); // throws on bytes that are not UTF-8
}

function int64(text) {
  const value = BigInt(text);
  return BigInt.asIntN(64, value) === value ? String(value) : refuse("outside 64 bits");
}

// JavaScript's Date rolls 30 February over to March and knows no microseconds: the first is detected by writing the
// day back, the second never reaches it.
function instant(text) {
  const parts = /^(\d{4}-\d\d-\d\d)T([01]\d|2[0-3]):([0-5]\d:[0-5]\d)\.(\d{6})(Z|[+-]\d\d:\d\d)$/.exec(text);
  if (!parts) refuse("not a timestamp with an offset");
  const [, day, hour, rest, micros, offset] = parts;
  const moment = new Date(`${date(day)}T${hour}:${rest}${offset}`).toISOString();
  if (!/^\d{4}-/.test(moment) || moment.startsWith("0000")) refuse("outside the years 1 to 9999");
  return `${moment.slice(0, 19)}.${micros}Z`;
}

function date(text) {
  if (!/^\d{4}-\d\d-\d\d$/.test(text) || text.startsWith("0000")) refuse("not a date");
  return new Date(`${text}T00:00:00Z`).toISOString().startsWith(text) ? text : refuse("no such day");
}

const TYPES = {
  string: (value) => `s:${escape(value)}`,
  integer: (value) => `i:${int64(value)}`,
  boolean: (value) => (/^(?:true|false)$/.test(value) ? `b:${value}` : refuse("not a boolean")),
  date: (value) => `d:${date(value)}`,
  timestamp: (value) => `t:${instant(value)}`,
  null: () => "n:null",
};

function encode(dimensions) {
  if (dimensions.length > 16) refuse("too many dimensions");
  const names = dimensions.map(({ name }) => name || refuse("empty name"));
  if (new Set(names).size !== names.length) refuse("a name twice");
  const tagged = ({ type, value }) => (Object.hasOwn(TYPES, type) ? TYPES[type](value) : refuse(`no ${type}`));
  const sorted = [...dimensions].sort((a, b) => codePointOrder(a.name, b.name));
  const text = sorted.map((dimension) => `${escape(dimension.name)}=${tagged(dimension)}`).join(",");
  return text.length <= 4096 ? text : refuse("too long");
}

const TAGS = { s: "string", i: "integer", b: "boolean", d: "date", t: "timestamp", n: "null" };

function decode(text) {
  const dimensions = (text === "" ? [] : text.split(",")).map((entry) => {
    const [, name, tag, value] = /^([^=]*)=([sibdtn]):([^=]*)$/.exec(entry) ?? refuse("not name=tag:value");
    if (tag === "i" && !/^-?\d+$/.test(value)) refuse("not an integer");
    return { name: unescape(name), type: TAGS[tag], value: tag === "s" ? unescape(value) : value };
  });
  return encode(dimensions) === text ? dimensions : refuse("another spelling of a key");
}

const pieces = (list) => list.map(({ text, times }) => text.repeat(times)).join("");
const units = (list) => String.fromCharCode(...list.map((unit) => parseInt(unit, 16)));
const input = ({ dimensions }) => dimensions.map((one) => ({
  name: one.name_utf16 ? units(one.name_utf16) : one.name,
  type: one.type,
  value: one.value_utf16 ? units(one.value_utf16) : one.value_repeat ? pieces(one.value_repeat) : one.value,
}));

function outcome(run) {
  try {
    return run();
  } catch (error) {
    if (error instanceof RangeError || error instanceof URIError || error instanceof SyntaxError) return null;
    throw error;
  }
}

const { accepted, refused } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const failures = [
  ...accepted.filter((vector) => outcome(() => encode(input(vector))) !== vector.canonical),
  ...accepted.filter((vector) => outcome(() => encode(decode(vector.canonical))) !== vector.canonical),
  ...refused.filter((vector) => outcome(() =>
    vector.dimensions ? encode(input(vector)) : decode(vector.text ?? pieces(vector.text_repeat))) !== null),
];
for (const { name } of failures) console.error(`mismatch: ${name}`);
console.log(`${accepted.length} accepted, ${refused.length} refused, ${failures.length} mismatches`);
process.exitCode = failures.length === 0 && accepted.length > 0 && refused.length > 0 ? 0 : 1;

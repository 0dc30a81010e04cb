// A browser's decoder with streams that lost slices: it outputs every picture and never stops.
// PICTURES=10000 makes it long: `make loss`.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';

const BINARY = process.env.TAUTLINE ?? '../target/release/tautline';
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const PICTURES = process.env.PICTURES ?? '600';

let folder;
let server;
let browser;
let page;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tautline-loss-'));
  const told = await promisify(execFile)(BINARY, ['lab', 'loss', '--pictures', PICTURES, '--keep', folder]);
  console.log(told.stdout.trim());
  server = createServer((request, response) => {
    const name = /^\/(\d+\.(?:h264|json))$/.exec(request.url)?.[1];
    if (name === undefined) {
      response.setHeader('content-type', 'text/html').end('<!doctype html><title>decode</title>');
    } else {
      readFile(join(folder, name)).then((bytes) => response.end(bytes));
    }
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => { server.once('listening', resolve); });
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--no-first-run'] });
  page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
});

after(async () => {
  await browser?.close();
  server?.close();
  await rm(folder, { recursive: true, force: true });
});

test('every picture of every stream comes out without waiting', async () => {
  const streams = (await readdir(folder)).filter((name) => name.endsWith('.json'));
  assert.ok(streams.length > 0);
  for (const file of streams) {
    const found = await page.evaluate(decode, file.replace('.json', ''));
    console.log(`${found.name}: ${found.given} of ${found.fed} pictures, ${found.errors} errors, ` +
      `one by one p50 ${found.p50.toFixed(1)} ms, worst ${found.worst.toFixed(1)} ms`);
    assert.equal(found.errors, 0);
    assert.equal(found.given, found.fed);
  }
});

/**
 * Runs in the page: decodes stream `number` picture by picture. Returns its name, the pictures in
 * it (`fed`), those that came out (`given`), errors, and the median and worst time of one in ms. It
 * stops at an error, or at a picture that does not come out within 2 s.
 */
async function decode(number) {
  const { name, lengths } = await (await fetch(`/${number}.json`)).json();
  const bytes = new Uint8Array(await (await fetch(`/${number}.h264`)).arrayBuffer());
  let [given, errors, waiting] = [0, 0, null];
  const decoder = new VideoDecoder({
    output(frame) {
      frame.close();
      given += 1;
      waiting?.();
    },
    error() {
      errors += 1;
      waiting?.();
    },
  });
  decoder.configure({ codec: 'avc1.42E01F', optimizeForLatency: true });
  const times = [];
  let at = 0;
  for (let fed = 0; fed < lengths.length && errors === 0; fed += 1) {
    const data = bytes.subarray(at, at + lengths[fed]);
    at += lengths[fed];
    const type = isKey(data) ? 'key' : 'delta';
    const came = new Promise((resolve) => { waiting = resolve; });
    const begun = performance.now();
    decoder.decode(new EncodedVideoChunk({ type, timestamp: fed * 16_667, data }));
    await Promise.race([came, new Promise((resolve) => { setTimeout(resolve, 2_000); })]);
    times.push(performance.now() - begun);
    if (given <= fed) break; // It holds this one back, or has stopped.
  }
  times.sort((a, b) => a - b);
  const fed = lengths.length;
  return { name, fed, given, errors, p50: times[times.length >> 1], worst: times.at(-1) };

  function isKey(unit) {
    for (let i = 0; i + 3 < unit.length; i += 1) {
      if (unit[i] === 0 && unit[i + 1] === 0 && unit[i + 2] === 1 && (unit[i + 3] & 31) === 5) return true;
    }
    return false;
  }
}

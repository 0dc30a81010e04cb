// From capture to canvas over loopback, stage by stage, for as long as told: the delay may not grow.
//   MINUTES=60 PICTURES_PER_SECOND=60 node soak/latency.mjs
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';

const BINARY = process.env.TAUTLINE ?? '../target/release/tautline';
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const MINUTES = Number(process.env.MINUTES ?? '1');
const RATE = process.env.PICTURES_PER_SECOND ?? '60';
const LINKS = process.env.LINKS ?? 'direct';
// The page's figures are of its last ten seconds.
const WINDOW_S = 10;
const STAGES = ['camera-and-encoder', 'network', 'bridge', 'decoder', 'canvas'];
// What a shared machine does by itself from one minute to the next.
const GROWTH_MAX_MS = 10;

const port = await freePort();
const demo = spawn(BINARY, ['demo', '--console', `127.0.0.1:${port}`, '--links', LINKS, '--pictures-per-second', RATE],
  { stdio: ['ignore', 'pipe', 'inherit'] });
const ended = new Promise((resolve) => { demo.once('exit', resolve); });
let browser;
try {
  await said(/Ctrl-C/);
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--no-first-run'] });
  const page = await browser.newPage({ viewport: { width: 1760, height: 990 } });
  await page.goto(`http://127.0.0.1:${port}`);
  await page.locator('#details').evaluate((details) => { details.open = true; });
  await sleep((WINDOW_S + 5) * 1_000);
  const first = await figures(page);
  print('first', first);
  let last = first;
  for (let second = 0; second < MINUTES * 60; second += WINDOW_S) {
    await sleep(WINDOW_S * 1_000);
    last = await figures(page);
    if (second % 60 === 0) print(`after ${second + WINDOW_S} s`, last);
  }
  print('last', last);
  for (const stage of [...STAGES, 'stamp']) console.log(`  ${stage}: ${last.stages[stage]}`);
  const growth = last.p50 - first.p50;
  console.log(`median grown by ${growth.toFixed(1)} ms in ${MINUTES} min, ` +
    `JS heap ${first.heapMb.toFixed(1)} -> ${last.heapMb.toFixed(1)} MB`);
  assert.ok(growth < GROWTH_MAX_MS, `the delay grew by ${growth} ms`);
} finally {
  await browser?.close();
  demo.kill('SIGINT');
  await ended;
}

async function figures(page) {
  const number = async (id) => Number.parseFloat(await page.locator(`#${id}`).innerText());
  const stages = {};
  for (const stage of STAGES) stages[stage] = await page.locator(`#stage-${stage}`).innerText();
  stages.stamp = await page.locator('#stamp-latency').innerText();
  const [p50, p95, p99] = [await number('latency-p50'), await number('latency-p95'), await number('latency-p99')];
  const heapMb = await page.evaluate(() => performance.memory.usedJSHeapSize / 1e6);
  return { p50, p95, p99, stages, heapMb, rate: await number('picture-rate') };
}

function print(when, { p50, p95, p99, rate }) {
  console.log(`${when}: capture to canvas p50 ${p50}, p95 ${p95}, p99 ${p99} ms at ${rate} pictures/s`);
}

function said(words) {
  let text = '';
  return new Promise((resolve, reject) => {
    demo.stdout.on('data', (chunk) => {
      text += chunk;
      if (words.test(text)) resolve();
    });
    demo.once('exit', () => reject(new Error(`the demo ended: ${text}`)));
  });
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => { server.once('listening', resolve); });
  const { port: found } = server.address();
  await new Promise((resolve) => { server.close(resolve); });
  return found;
}

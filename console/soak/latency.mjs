// Latency from capture to canvas over loopback by stage, for a chosen time: the delay must not
// grow.
//
// MINUTES=60 PICTURES_PER_SECOND=30 ENCODER=own LINKS=direct node soak/latency.mjs
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { BINARY, freePort } from '../e2e/stand.mjs';

const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const MINUTES = Number(process.env.MINUTES ?? '1');
const RATE = process.env.PICTURES_PER_SECOND ?? '';
const LINKS = process.env.LINKS ?? 'direct';
const ENCODER = process.env.ENCODER ?? '';
// The page's figures cover its last ten seconds.
const WINDOW_S = 10;
const STAGES = ['camera-and-encoder', 'network', 'bridge', 'decoder', 'canvas'];
const BROWSER_STAGES = ['bridge', 'decoder', 'canvas'];
// Growth of the median that a shared machine's variation from one minute to the next explains.
const GROWTH_MAX_MS = 10;
const GROWTH_MIN_MINUTES = 10;
const START_MAX_S = 60;

const port = await freePort();
const demo = spawn(BINARY, ['demo', '--console', `127.0.0.1:${port}`, '--links', LINKS,
  ...(RATE ? ['--pictures-per-second', RATE] : []), ...(ENCODER ? ['--encoder', ENCODER] : [])],
{ stdio: ['ignore', 'pipe', 'inherit'] });
const ended = new Promise((resolve) => { demo.once('exit', resolve); });
let browser;
try {
  const [, address] = /^Open +(\S+)/m.exec(await said(/Ctrl-C/));
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--no-first-run'] });
  const page = await browser.newPage({ viewport: { width: 1760, height: 990 } });
  let loads = 0;
  await page.goto(address);
  // The address with the token leads to the console.
  await page.locator('#details').waitFor({ state: 'attached' });
  page.on('load', () => { loads += 1; });
  await page.locator('#details').evaluate((details) => { details.open = true; });
  await begun(page);
  await sleep((WINDOW_S + 5) * 1_000);
  console.log(`${processor()}, ${cpus().length} processors; ${BINARY}, encoder ${ENCODER || 'as by default'}, ` +
    `links ${LINKS}, ${RATE ? `${RATE} pictures/s asked for` : 'pictures/s as by default'}`);
  const before = jiffies();
  const windows = [];
  for (let second = 0; second < MINUTES * 60; second += WINDOW_S) {
    await sleep(WINDOW_S * 1_000);
    windows.push(await figures(page));
    if (second % 60 === 0) line(`after ${second + WINDOW_S} s`, windows.at(-1));
  }
  line('last', windows.at(-1));
  table(windows);
  const busy = jiffies().map((now, at) => now - before[at]);
  console.log(`the machine: ${share(busy[0], busy)} idle, ${share(busy[1], busy)} stolen by its host; ` +
    'figures of a busy one tell of the machine');
  const tenth = Math.ceil(windows.length / 10);
  const over = (part, of) => median(part.map(of));
  const [first, last] = [windows.slice(0, tenth), windows.slice(-tenth)];
  const growth = over(last, (window) => window.total.p50) - over(first, (window) => window.total.p50);
  console.log(`median grown by ${growth.toFixed(1)} ms in ${MINUTES} min, from the first tenth of the windows to the last; ` +
    `JS heap ${over(first, (window) => window.heapMb).toFixed(1)} -> ${over(last, (window) => window.heapMb).toFixed(1)} MB`);
  console.log(`slices skipped for a loss: ${windows.at(-1).skipped - windows[0].skipped}; ` +
    `late or lost in the worst window: ${Math.max(...windows.map((window) => window.lateOrLost))} %; ` +
    `fewest pictures/s drawn: ${Math.min(...windows.map((window) => window.rate))}; ` +
    `longest delay since the start: ${windows.at(-1).worst} ms; times the page was loaded again: ${loads}`);
  assert.ok(windows.every((window) => Number.isFinite(window.total.p50)), 'for ten seconds nothing was drawn');
  assert.equal(loads, 0, 'the page was loaded again');
  // In a shorter run, other load on the machine outweighs any growth.
  if (MINUTES >= GROWTH_MIN_MINUTES) assert.ok(growth < GROWTH_MAX_MS, `the delay grew by ${growth} ms`);
} finally {
  await browser?.close();
  demo.kill('SIGINT');
  await ended;
}

/** Waits until something is drawn and the clocks are known. Fails after START_MAX_S. */
async function begun(page) {
  for (let second = 0; second < START_MAX_S; second++) {
    const text = await page.locator('#latency-p50').innerText();
    if (Number.isFinite(Number.parseFloat(text)) && await page.locator('#stage-canvas').count() > 0) return;
    await sleep(1_000);
  }
  throw new Error(`nothing was drawn in ${START_MAX_S} s`);
}

/** Reads the page's figures of its last WINDOW_S, times in ms; NaN where it shows none. */
async function figures(page) {
  const number = async (id) => Number.parseFloat((await page.locator(`#${id}`).innerText()).replaceAll(',', ''));
  const stages = {};
  for (const stage of STAGES) {
    const [p50, p95, p99] = (await page.locator(`#stage-${stage}`).innerText()).split('/').map(Number.parseFloat);
    stages[stage] = { p50, p95, p99 };
  }
  const total = { p50: await number('latency-p50'), p95: await number('latency-p95'), p99: await number('latency-p99') };
  const heapMb = await page.evaluate(() => performance.memory.usedJSHeapSize / 1e6);
  return { total, stages, stamp: await number('stamp-latency'), heapMb, rate: await number('picture-rate'),
    worst: await number('latency-worst-ever'), skipped: await number('slices-skipped'), lateOrLost: await number('late-or-lost') };
}

function line(when, { total: { p50, p95, p99 }, rate }) {
  console.log(`${when}: capture to canvas p50 ${p50}, p95 ${p95}, p99 ${p99} ms at ${rate} pictures/s`);
}

/**
 * Prints each percentile of the total and of every stage: its median over all windows, and its
 * least.
 */
function table(windows) {
  const row = (name, of) => {
    const cells = ['p50', 'p95', 'p99'].map((percentile) => {
      const values = windows.map((window) => of(window)[percentile]).sort((a, b) => a - b);
      return `${median(values).toFixed(1).padStart(8)} (${values[0].toFixed(1)})`;
    });
    console.log(name.padEnd(20) + cells.map((cell) => cell.padStart(18)).join(''));
  };
  console.log(`ms, median of ${windows.length} windows of ${WINDOW_S} s (and the least)`);
  console.log(' '.repeat(20) + ['p50', 'p95', 'p99'].map((head) => head.padStart(18)).join(''));
  row('capture to canvas', (window) => window.total);
  for (const stage of STAGES) row(`  ${stage}`, (window) => window.stages[stage]);
  const browser = median(windows.map((window) => BROWSER_STAGES.reduce((sum, stage) => sum + window.stages[stage].p50, 0)));
  const total = median(windows.map((window) => window.total.p50));
  console.log(`the browser's (${BROWSER_STAGES.join(', ')}): ${browser.toFixed(1)} ms of ${total.toFixed(1)}, medians; ` +
    `by the stamp in the picture ${median(windows.map((window) => window.stamp)).toFixed(0)} ms`);
}

/** Returns the median; of an even number of values, the upper one of the middle two. */
function median(values) {
  const ascending = values.toSorted((a, b) => a - b);
  return ascending[Math.floor(ascending.length / 2)];
}

/**
 * Returns the idle, stolen and total time of all processors since the machine started, in jiffies.
 */
function jiffies() {
  const fields = readFileSync('/proc/stat', 'utf8').split('\n')[0].split(/\s+/).slice(1).map(Number);
  return [fields[3], fields[7], fields.slice(0, 8).reduce((sum, field) => sum + field, 0)];
}

function share(part, [, , all]) {
  return `${(100 * part / all).toFixed(0)} %`;
}

function processor() {
  return cpus()[0]?.model ?? 'an unknown processor';
}

function said(words) {
  let text = '';
  return new Promise((resolve, reject) => {
    demo.stdout.on('data', (chunk) => {
      text += chunk;
      if (words.test(text)) resolve(text);
    });
    demo.once('exit', () => reject(new Error(`the demo ended: ${text}`)));
  });
}

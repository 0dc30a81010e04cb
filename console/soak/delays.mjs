// Records the delays of a driving page in Chromium from the guard's black box, for the guard's
// recorded drives.
//
// MINUTES=5 LINKS=lte-driving OUT=../crates/guard/tests/drives/recorded.csv node soak/delays.mjs
import assert from 'node:assert/strict';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { BINARY, arm, eventually, launchBrowser, openConsole, startDemo } from '../e2e/stand.mjs';
import { COMMANDS, QUANTITIES, SHARES, measured, quantile } from './quantities.mjs';

const MINUTES = Number(process.env.MINUTES ?? '5');
const LINKS = process.env.LINKS ?? 'lte-driving';
const OUT = process.env.OUT ?? '';
// The black box keeps every step from 30 s before to 30 s after each stop.
const STINT_S = 25;
// MCAP opcode of a channel record.
const CHANNEL = 4;
const MESSAGE = 5;

const { machine, steps } = await drive();
const { found, stints } = measured(steps);
for (const [name, values] of Object.entries(found)) {
  assert.ok(values.length > 0, `no ${name} in ${steps.length} steps`);
  console.log(`${name}, ${values.length} values: ${QUANTITIES[name]}`);
}
for (const { transition, loop_age_ms: loopAge, speed } of steps) {
  if (transition?.to !== 'Manoeuvre' || transition.cause === 'EmergencyStop') continue;
  console.log(`stopped by the guard: ${transition.cause}, ${Math.round(transition.value)} of ${transition.limit}, `
    + `at ${speed.toFixed(1)} m/s, loop age ${Math.round(loopAge)} ms`);
}
const lines = [
  '# Delays and pauses by quantile, in milliseconds: the inverse of a distribution, straight between the columns.',
  `# Recorded by make delays, ${new Date().toISOString().slice(0, 10)}: ${machine}.`,
  `quantity,${SHARES.map((share) => `p${100 * share}`).join(',')}`,
  ...Object.entries(found).map(([name, values]) => `${name},${SHARES.map((share) => quantile(values, share).toFixed(1)).join(',')}`),
];
console.log(lines.join('\n'));
const commands = [`# From here on ${COMMANDS} of each command, stint by stint.`, ...stints.flatMap((stint) => ['stint', ...stint])];
if (OUT) writeFileSync(OUT, `${[...lines, ...commands].join('\n')}\n`);

/**
 * Drives for MINUTES in stints, each ended by an emergency stop. Returns the guard's recorded
 * `steps`, and the conditions in words (`machine`).
 */
async function drive() {
  const demo = await startDemo(['--links', LINKS]);
  let browser;
  try {
    browser = await launchBrowser();
    const page = await browser.newPage({ viewport: { width: 1760, height: 990 } });
    await openConsole(page, demo.address);
    const before = jiffies();
    let stints = 0;
    let stopped = 0;
    for (const end = performance.now() + MINUTES * 60_000; performance.now() < end; stints += 1) {
      await arm(page);
      const isStopped = await stint(page, Math.min(STINT_S, (end - performance.now()) / 1_000));
      if (isStopped) console.error(`stint ${stints + 1} ended by the guard: ${await page.locator('#banner-detail').innerText()}`);
      stopped += Number(isStopped);
      await release(page);
      console.error(`${stints + 1} stints, ${Math.max(0, Math.ceil((end - performance.now()) / 60_000))} min left`);
    }
    const busy = jiffies().map((now, at) => now - before[at]);
    // Time for data on its way to the disk.
    await sleep(2_000);
    const machine = `${MINUTES} min over ${LINKS} links in ${stints} stints, ${stopped} of them ended by the guard; ${BINARY.includes('debug') ? 'a build for tests, ' : ''}`
      + `Chromium ${browser.version()}, headless; ${cpus()[0]?.model ?? 'unknown'}, ${cpus().length} processors, ${Math.round(100 * busy[0] / busy[1])} % idle`;
    return { machine, steps: recorded(demo.blackbox) };
  } finally {
    await browser?.close();
    await demo.end();
  }
}

/** Drives for `seconds` in weaves, with keys. Returns whether the guard stopped the car earlier. */
async function stint(page, seconds) {
  await page.keyboard.down('ArrowUp');
  for (const end = performance.now() + seconds * 1_000; performance.now() < end;) {
    for (const key of ['ArrowLeft', 'ArrowRight']) {
      await page.keyboard.down(key);
      await sleep(300);
      await page.keyboard.up(key);
      await sleep(700);
    }
    if (['Held', 'Stopping'].includes(await page.locator('#mode').innerText())) return true;
  }
  return false;
}

/** Ends a stint with an emergency stop, waits until the car stands, and resets the latch. */
async function release(page) {
  await page.keyboard.up('ArrowUp');
  await page.keyboard.press('Escape');
  await page.locator('#act-reset').waitFor({ timeout: 30_000 });
  await eventually(async () => {
    await page.keyboard.press('Backspace');
    return page.locator('#act-reset').isVisible();
  }, (waits) => !waits, 30_000, 500);
}

/** Returns the steps of all drives in a black box, in order: MCAP without chunks, JSON messages. */
function recorded(root) {
  const files = readdirSync(root, { recursive: true }).filter((name) => name.endsWith('.mcap')).sort();
  return files.flatMap((name) => [...messages(readFileSync(join(root, name)))]);
}

/** Yields the guard's steps of one file, up to a record that is cut off. */
function* messages(bytes) {
  const topics = new Map();
  const text = (at) => bytes.toString('utf8', at + 4, at + 4 + bytes.readUInt32LE(at));
  // After the magic: opcode, length, content.
  for (let at = 8; at + 9 <= bytes.length;) {
    const [opcode, length] = [bytes[at], Number(bytes.readBigUInt64LE(at + 1))];
    const content = at + 9;
    at = content + length;
    if (at > bytes.length) return;
    if (opcode === CHANNEL) topics.set(bytes.readUInt16LE(content), text(content + 4));
    if (opcode === MESSAGE && topics.get(bytes.readUInt16LE(content)) === '/guard/step') {
      yield JSON.parse(bytes.toString('utf8', content + 22, at));
    }
  }
}

/** Returns the idle and the total time of all processors since the machine started, in jiffies. */
function jiffies() {
  const fields = readFileSync('/proc/stat', 'utf8').split('\n')[0].split(/\s+/).slice(1).map(Number);
  return [fields[3], fields.slice(0, 8).reduce((sum, field) => sum + field, 0)];
}


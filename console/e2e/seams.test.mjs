// The edges between strips in a browser: separate streams, shown as one picture. Needs
// target/release/tautline (or TAUTLINE), Debian's chromium and ffmpeg.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually, launchBrowser, openConsole, startDemo } from './stand.mjs';

/** First row of each strip but the first. */
const SEAMS = [112, 240, 352, 480, 592];
const LOOKS = 10;
const ROUNDS = 6;
// Every strip is drawn again within this time.
const SETTLED_MS = 300;

test('steps between strips are smoothed on the canvas', async (context) => {
  const folder = await mkdtemp(join(tmpdir(), 'tautline-seams-'));
  context.after(() => rm(folder, { recursive: true }));
  const clip = join(folder, 'clip.mp4');
  // A clip that motion cannot predict, at a rate above what mobile links carry well.
  const made = spawnSync('ffmpeg', ['-v', 'error', '-f', 'lavfi', '-i',
    "nullsrc=size=320x180:rate=25:duration=1,geq=lum='128+60*sin(X/10+T*3)*cos(Y/8-T*5)':cb=128:cr=128," +
    'scale=1280:720,noise=alls=8:allf=t', '-pix_fmt', 'yuv420p', '-qp', '20', clip]);
  assert.equal(made.status, 0, `ffmpeg: ${made.stderr}`);
  const { address, end } = await startDemo(['--links', 'lte', '--clip', clip, '--pictures-per-second', '12']);
  context.after(end);
  const browser = await launchBrowser();
  context.after(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 1760, height: 990 } });
  await openConsole(page, address);
  await eventually(() => page.evaluate(() => document.querySelector('canvas#picture').height), (height) => height === 720, 20_000);
  await sleep(2_000);
  // Alternate: the same seams vary over time with the link's rate.
  const smoothed = [];
  const decoded = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    smoothed.push(...await looks(page));
    // Rows that cannot be read are shown as decoded.
    await page.workers()[0].evaluate(refuseRows);
    await sleep(SETTLED_MS);
    decoded.push(...await looks(page));
    await page.workers()[0].evaluate(giveRows);
    await sleep(SETTLED_MS);
  }
  const [shown, coded] = [excess(smoothed), excess(decoded)];
  console.log(`steps between strips are larger by ${coded.toFixed(2)} as decoded, by ${shown.toFixed(2)} as shown`);
  // Without smoothing, both differ by chance alone.
  assert.ok(shown < coded / 2 && coded - shown > 0.1, `${shown} of ${coded} is left`);
});

/**
 * Returns the steps of `stepsAt` at every seam, each of the one of several looks in which the seam
 * is the smallest: a busy browser reads a strip's rows, and smooths them, after it has drawn them.
 */
async function looks(page) {
  const steps = [];
  for (let look = 0; look < LOOKS; look += 1) {
    steps.push(await page.evaluate(stepsAt, SEAMS));
    await sleep(50);
  }
  return SEAMS.map((_, seam) => steps.map((look) => look[seam]).reduce((least, next) => (excess([next]) < excess([least]) ? next : least)));
}

/**
 * Returns the share by which the steps across seams exceed those between adjacent rows nearby: 0
 * for no seam, 1 for twice as large.
 */
function excess(steps) {
  const across = steps.reduce((sum, [, at]) => sum + at, 0);
  const around = steps.reduce((sum, [before, , after]) => sum + (before + after) / 2, 0);
  return across / around - 1;
}

/** Runs in the page's worker: makes the rows of frames unreadable. */
function refuseRows() {
  self.copyTo ??= VideoFrame.prototype.copyTo;
  VideoFrame.prototype.copyTo = () => Promise.reject(new Error('off'));
}

/** Runs in the page's worker: makes rows readable again. */
function giveRows() {
  VideoFrame.prototype.copyTo = self.copyTo;
}

/**
 * Runs in the page: returns for each seam the mean steps of green, of 255, from one row to the
 * next: two rows before the seam, across it, and two rows after it.
 */
function stepsAt(seams) {
  const canvas = document.querySelector('canvas#picture');
  const { width } = canvas;
  // Only six rows around each seam: reading a whole picture takes a browser without a GPU long.
  const rows = 6;
  const context = new OffscreenCanvas(width, rows * seams.length).getContext('2d', { willReadFrequently: true });
  seams.forEach((row, at) => {
    context.drawImage(canvas, 0, row - rows / 2, width, rows, 0, rows * at, width, rows);
  });
  const { data } = context.getImageData(0, 0, width, rows * seams.length);
  const step = (row) => {
    let sum = 0;
    for (let x = 0; x < width; x += 1) {
      sum += Math.abs(data[4 * (row * width + x) + 1] - data[4 * ((row - 1) * width + x) + 1]);
    }
    return sum / width;
  };
  // Two rows away, since smoothing changes the steps in between.
  return seams.map((_, at) => rows * at + rows / 2).map((row) => [step(row - 2), step(row), step(row + 2)]);
}

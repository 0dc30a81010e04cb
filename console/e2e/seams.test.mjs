// The edges between strips, in a browser: decoded as streams of their own, shown as one picture.
// Needs target/release/tautline (or TAUTLINE), Debian's chromium and ffmpeg.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually, launchBrowser, openConsole, startDemo } from './stand.mjs';

const SEAMS = [112, 240, 352, 480, 592];
const LOOKS = 30;

test('steps between strips are smoothed where they are drawn', async (context) => {
  const folder = await mkdtemp(join(tmpdir(), 'tautline-seams-'));
  context.after(() => rm(folder, { recursive: true }));
  const clip = join(folder, 'clip.mp4');
  // What no motion explains, at more than mobile links carry well.
  const made = spawnSync('ffmpeg', ['-v', 'error', '-f', 'lavfi', '-i',
    "nullsrc=size=320x180:rate=25:duration=1,geq=lum='128+60*sin(X/10+T*3)*cos(Y/8-T*5)':cb=128:cr=128," +
    'scale=1280:720,noise=alls=8:allf=t', '-pix_fmt', 'yuv420p', '-qp', '20', clip]);
  assert.equal(made.status, 0, `ffmpeg: ${made.stderr}`);
  const { address, end } = await startDemo(['--links', 'lte', '--clip', clip]);
  context.after(end);
  const browser = await launchBrowser();
  context.after(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 1760, height: 990 } });
  await openConsole(page, address);
  await eventually(() => page.evaluate(() => document.querySelector('canvas#picture').height), (height) => height === 720, 20_000);
  await sleep(2_000);
  const smoothed = await excess(page);
  // Rows that cannot be read are shown as decoded.
  await page.workers()[0].evaluate(() => { VideoFrame.prototype.copyTo = () => Promise.reject(new Error('off')); });
  await sleep(500);
  const decoded = await excess(page);
  console.log(`steps between strips are larger by ${decoded.toFixed(2)} as decoded, by ${smoothed.toFixed(2)} as shown`);
  assert.ok(decoded > 0.1, `no seams in what is decoded: ${decoded}`);
  assert.ok(smoothed < decoded / 2, `${smoothed} of ${decoded} is left`);
});

/** Returns how much larger steps of luma are between strips than from row to row beside them, a share. */
async function excess(page) {
  let [between, beside] = [0, 0];
  for (let look = 0; look < LOOKS; look += 1) {
    const steps = await page.evaluate(stepsAt, SEAMS);
    for (const [before, at, after] of steps) {
      between += at;
      beside += (before + after) / 2;
    }
    await sleep(50);
  }
  return between / beside - 1;
}

/** Runs in the page: the mean steps of green into the row before a seam, across it, and into the one after it. */
function stepsAt(seams) {
  const canvas = document.querySelector('canvas#picture');
  const { width, height } = canvas;
  const context = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  const step = (row) => {
    let sum = 0;
    for (let x = 0; x < width; x += 1) {
      sum += Math.abs(data[4 * (row * width + x) + 1] - data[4 * ((row - 1) * width + x) + 1]);
    }
    return sum / width;
  };
  // Two rows on: what is smoothed steps there as well.
  return seams.map((row) => [step(row - 2), step(row), step(row + 2)]);
}

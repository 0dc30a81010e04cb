// Pictures of another size than the simulated camera's, from a clip to the page. Needs
// target/release/tautline (or TAUTLINE), Debian's chromium and ffmpeg.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { launchBrowser, openConsole, startDemo } from './stand.mjs';

const [WIDTH, HEIGHT] = [640, 480];

test('a clip of 640x480 is shown at its own size', async (context) => {
  const folder = await mkdtemp(join(tmpdir(), 'tautline-size-'));
  context.after(() => rm(folder, { recursive: true }));
  const clip = join(folder, 'clip.mp4');
  const made = spawnSync('ffmpeg', ['-v', 'error', '-f', 'lavfi', '-i',
    `color=c=lime:size=${WIDTH}x${HEIGHT}:rate=25:duration=2`, '-pix_fmt', 'yuv420p', clip]);
  assert.equal(made.status, 0, `ffmpeg: ${made.stderr}`);
  const { address, end } = await startDemo(['--links', 'direct', '--clip', clip]);
  context.after(end);
  const browser = await launchBrowser();
  context.after(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 1760, height: 990 } });
  await openConsole(page, address);
  // The last pixel of the picture is the clip's; there is nothing beyond it.
  const last = performance.now() + 20_000;
  let seen = [];
  while (performance.now() < last) {
    seen = await page.evaluate(lastPixels, [WIDTH, HEIGHT]);
    if (seen[0] > 128 && seen[1] === 0) break;
    await sleep(100);
  }
  assert.ok(seen[0] > 128, `the last pixel's green is ${seen[0]}`);
  assert.equal(seen[1], 0, 'the canvas is larger than the picture');
  const box = await page.locator('#picture').boundingBox();
  assert.ok(Math.abs(box.width / box.height - WIDTH / HEIGHT) < 0.01, `laid out as ${box.width}x${box.height}`);
});

/**
 * Runs in the page: returns the green of the picture's last pixel, and the opacity of the one
 * diagonally beyond it, each from 0 to 255.
 */
function lastPixels([width, height]) {
  const copy = new OffscreenCanvas(width + 1, height + 1);
  const context = copy.getContext('2d');
  context.drawImage(document.querySelector('canvas#picture'), 0, 0);
  const { data } = context.getImageData(width - 1, height - 1, 2, 2);
  return [data[1], data[15]];
}

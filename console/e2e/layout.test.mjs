// The page at every size in use: the emergency stop is on the screen and nothing covers it. Needs
// console/dist and Debian's chromium, no vehicle.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';

const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const DIST = new URL('../dist/', import.meta.url).pathname;
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };
/** Width and height of the window in device pixels, and its zoom. */
const SIZES = [
  [800, 600, 1], [1024, 768, 1], [1280, 720, 1], [1760, 990, 1], [1920, 1080, 1], [2560, 1440, 1], [3840, 2160, 1],
  [800, 600, 2], [1024, 768, 2], [1280, 720, 2], [1920, 1080, 2], [3840, 2160, 2],
];

let server;
let browser;

before(async () => {
  server = createServer(async (request, response) => {
    const path = request.url === '/' ? 'index.html' : request.url.slice(1).split('?')[0];
    const bytes = await readFile(join(DIST, path)).catch(() => null);
    response.writeHead(bytes === null ? 404 : 200, { 'content-type': TYPES[extname(path)] ?? 'text/plain' }).end(bytes);
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => { server.once('listening', resolve); });
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--no-first-run'] });
});

after(async () => {
  await browser?.close();
  server?.close();
});

for (const [width, height, zoom] of SIZES) {
  test(`the emergency stop is on the screen at ${width}x${height}, zoom ${zoom}`, async () => {
    const page = await opened(width, height, zoom);
    await assertOnScreen(page, '#emergency-stop');
    // With everything that can be next to it, at its longest text.
    await page.evaluate(() => {
      document.querySelector('#vehicle').textContent = 'a vehicle with a rather long name';
      document.querySelector('#connection').textContent = 'disconnected';
      document.querySelector('#session').textContent = 'waiting for the vehicle';
      document.querySelector('#emergency-stop').textContent = 'Stop not acknowledged';
      for (const part of document.querySelectorAll('details')) part.open = true;
    });
    await assertOnScreen(page, '#emergency-stop');
    await page.mouse.wheel(0, 5_000);
    await assertOnScreen(page, '#emergency-stop');
    await page.keyboard.press('F1');
    await assertOnScreen(page, '#emergency-stop');
    await page.close();
  });

  test(`mode, speed, actions are visible at ${width}x${height}, zoom ${zoom}`, async () => {
    const page = await opened(width, height, zoom);
    // As while driving: with actions and without a banner.
    await page.addStyleTag({ content: '#acts[hidden], #act-arm[hidden] { display: flex !important } #banner, #picture-age { display: none !important }' });
    for (const selector of ['#mode', '#hud-speed', '#hud-gear', '#hud-delay', '#act-arm']) await assertOnScreen(page, selector);
    const picture = await page.locator('#picture').boundingBox();
    assert.ok(picture.width >= width / zoom / 3, `the picture is ${picture.width} wide`);
    const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wider <= 0, `the page is ${wider} px wider than its window`);
    await page.close();
  });
}

test('the help names every key and takes no focus', async () => {
  const page = await opened(1280, 720, 1);
  await page.keyboard.press('F1');
  const help = page.locator('#help');
  assert.ok(await help.isVisible());
  const words = await help.innerText();
  for (const key of ['W', 'Space', 'Esc', 'Enter', 'Backspace', 'P', 'R', 'Shift', 'F1']) {
    assert.ok(words.includes(key), `no ${key} in the help`);
  }
  assert.equal(await page.evaluate(() => document.activeElement.tagName), 'BODY');
  await page.keyboard.press('F1');
  assert.ok(!await help.isVisible());
  await page.close();
});

/**
 * Opens the page in a window of this size in device pixels. One with zoom 2 has half as many CSS
 * pixels, each of two device pixels.
 */
async function opened(width, height, zoom) {
  const viewport = { width: Math.floor(width / zoom), height: Math.floor(height / zoom) };
  const page = await browser.newPage({ viewport, deviceScaleFactor: zoom });
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.waitForFunction(() => document.querySelector('#keys').childElementCount > 0);
  return page;
}

/**
 * Asserts that the element is completely within the window, and that clicks at its middle and near
 * its left and right edges hit it.
 */
async function assertOnScreen(page, selector) {
  const found = await page.evaluate((wanted) => {
    const element = document.querySelector(wanted);
    const box = element.getBoundingClientRect();
    const inside = box.width > 0 && box.left >= 0 && box.top >= 0 && box.right <= innerWidth + 0.5 && box.bottom <= innerHeight + 0.5;
    const at = (x, y) => {
      const hit = document.elementFromPoint(box.left + box.width * x, box.top + box.height * y);
      return hit !== null && (element.contains(hit) || hit.contains(element));
    };
    return { inside, hit: at(0.5, 0.5) && at(0.1, 0.3) && at(0.9, 0.7), box: JSON.stringify(box), window: [innerWidth, innerHeight] };
  }, selector);
  assert.ok(found.inside, `${selector} is not within ${found.window}: ${found.box}`);
  assert.ok(found.hit, `something lies over ${selector}`);
}

// Pictures of a program at the vehicle's socket, from there to the page, which tells why there are
// none. Needs target/release/tautline (or TAUTLINE) and Debian's chromium.
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually, launchBrowser, openConsole, startDemo } from './stand.mjs';

/** Longest time in ms until the page shows what the program sends, on a busy computer. */
const SOON = 20_000;
const PERIOD = 50;
const GREEN = [20, 220, 20];
const BLUE = [20, 20, 220];

let folder;
let demo;
let browser;
let page;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tautline-camera-'));
  demo = await startDemo(['--links', 'lan', '--machine', 'robot', '--camera', `unix:${join(folder, 'camera.sock')}`]);
  browser = await launchBrowser();
  page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await openConsole(page, demo.address);
});

after(async () => {
  await browser?.close();
  await demo?.end();
  await rm(folder, { recursive: true, force: true });
});

test('the page shows a program\'s pictures, and why there are none', async () => {
  await told('no program delivers pictures');
  await sends({ width: 640, height: 360, colour: GREEN }, () => shows(640, 360, GREEN));
  await told('no program delivers pictures');
  // Another program, of another size.
  await sends({ width: 480, height: 270, colour: BLUE }, () => shows(480, 270, BLUE));
  await sends({ width: 480, height: 270, colour: GREEN, seconds: -3 }, () => told('in the past'));
  await shows(480, 270, BLUE);
  await sends({ width: 480, height: 270, colour: GREEN, seconds: 3 }, () => told('in the future'));
  await sends({ garbage: true }, () => told('no picture begins here'));
  await sends({ width: 640, height: 360, colour: GREEN }, () => shows(640, 360, GREEN));
  await eventually(banner, (words) => !/picture/i.test(words), SOON);
});

/** Sends pictures, dated by `seconds` from now, or garbage, until `done` has passed. */
async function sends({ width, height, colour, seconds = 0, garbage = false }, done) {
  let isOver = false;
  const program = (async () => {
    let socket = null;
    for (let number = 1; !isOver; number += 1) {
      if (socket === null || socket.destroyed) {
        socket = connect(join(folder, 'camera.sock'));
        socket.on('error', () => socket.destroy());
      }
      socket.write(garbage ? Buffer.alloc(64, 'not a picture ') : picture(width, height, colour, number, seconds));
      await sleep(PERIOD);
    }
    socket.destroy();
  })();
  try {
    await done();
  } finally {
    isOver = true;
    await program;
  }
}

/** Returns header and pixels of one colour with a dim band that moves. */
function picture(width, height, colour, number, seconds) {
  const bytes = Buffer.alloc(64 + 3 * width * height);
  bytes.write('TPIC', 0, 'latin1');
  bytes.writeUInt16BE(1, 4);
  bytes.write('RGB3', 8, 'latin1');
  [width, height, 3 * width, 3 * width * height, number].forEach((value, index) => bytes.writeUInt32BE(value, 12 + 4 * index));
  bytes.writeBigUInt64BE(process.hrtime.bigint() + BigInt(seconds * 1e9), 32);
  bytes.writeFloatBE(1_000 / PERIOD, 40);
  bytes.writeUInt32BE(1, 44);
  bytes.fill(Buffer.from(colour), 64);
  const band = 64 + 3 * width * ((number * 4) % (height - 64));
  bytes.fill(60, band, band + 3 * width * 40);
  return bytes;
}

function banner() {
  return page.locator('#banner').innerText();
}

async function told(words) {
  await eventually(banner, (shown) => shown.includes(words), SOON);
}

/** Waits until the last pixel of the page's picture has the colour, with nothing beyond it. */
async function shows(width, height, colour) {
  const strongest = colour.indexOf(Math.max(...colour));
  await eventually(() => page.evaluate(lastPixels, [width, height]),
    ({ last, beyond }) => last[strongest] > 128 && last.every((value, index) => index === strongest || value < 100) && beyond === 0, SOON);
}

/** Runs in the page: returns the picture's last pixel, and the opacity of the one beyond it. */
function lastPixels([width, height]) {
  const copy = new OffscreenCanvas(width + 1, height + 1);
  const context = copy.getContext('2d');
  context.drawImage(document.querySelector('canvas#picture'), 0, 0);
  const { data } = context.getImageData(width - 1, height - 1, 2, 2);
  return { last: [...data.slice(0, 3)], beyond: data[15] };
}

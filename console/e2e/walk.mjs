// The end of a new user's first session: opens the address that the operator printed, waits for
// pictures, and drives the car. Run by packaging/walk in the network of the operator's machine:
// node walk.mjs ADDRESS.
import assert from 'node:assert/strict';
import { arm, defineStampReader, eventually, launchBrowser, openConsole } from './stand.mjs';

const [address] = process.argv.slice(2);
assert.ok(address, 'node walk.mjs ADDRESS');
/** Time in ms after which a new user asks for help. */
const WALK_TIMEOUT = 60_000;
/** Number of different pictures that count as a moving picture. */
const PICTURES = 30;
/** Speed in km/h above which the car drives. */
const SPEED = 10;

const begun = performance.now();
const browser = await launchBrowser();
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 720 } });
  await openConsole(page, address);
  await page.evaluate(defineStampReader);
  const stamps = new Set();
  await eventually(async () => {
    const stamp = await page.evaluate(() => globalThis.readStamp());
    if (stamp !== null) {
      if (stamps.size === 0) tell('the first picture is shown');
      stamps.add(stamp);
    }
    return stamps.size;
  }, (count) => count >= PICTURES, WALK_TIMEOUT, 10);
  tell(`${PICTURES} different pictures were shown`);
  const speed = async () => Number.parseFloat(await page.locator('#hud-speed').innerText());
  assert.equal(await speed(), 0, 'nobody has driven yet');
  await arm(page);
  await page.keyboard.down('ArrowUp');
  await eventually(speed, (kmh) => kmh > SPEED, WALK_TIMEOUT);
  tell(`the car drives at ${await speed()} km/h`);
  await page.keyboard.up('ArrowUp');
} finally {
  await browser.close();
}

function tell(what) {
  console.log(`${((performance.now() - begun) / 1_000).toFixed(1)} s after the address was opened: ${what}`);
}

// Gamepads, wheels and pedals on a page: which one drives, calibration, and a device that stops
// sending. A simulated vehicle records the page's commands. The last test drives the demo, whose
// guard brakes. Needs console/dist, Debian's chromium and target/release/tautline (or TAUTLINE).
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { VirtualPads } from './pads.mjs';
import { startStandIn } from './stand-in.mjs';
import { Processes, arm, eventually, inTries, launchBrowser, openConsole, startDemo } from './stand.mjs';

const [STEERING, THROTTLE, BRAKE] = [0, 7, 6];
const DRIVING = 2;
const INPUTS_UNHEALTHY = 8;
/**
 * Maximum time in ms until a frozen device is reported: RELEASED_QUIET_MAX_MS of the page, plus
 * half a second for delays on a busy machine.
 */
const FROZEN_MAX = 3_500;
/**
 * Maximum time in ms to the guard and back to the page, with delays on a busy machine in each of
 * four processes.
 */
const ROUND_TRIP_MAX = 1_000;

let browser;
before(async () => { browser = await launchBrowser(); });
after(() => browser?.close());

describe('with a simulated vehicle', () => {
  let standIn;
  let page;
  let pads;

  beforeEach(async () => {
    standIn = await startStandIn();
    page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    pads = await VirtualPads.on(page);
    await page.goto(standIn.address);
    await commandWhere((command) => command.absences === 0);
  });

  afterEach(async () => {
    await page?.close();
    await standIn?.close();
  });

  test('of two pads, the second one drives once it is moved', async () => {
    await pads.plugPad(0);
    await pads.plugPad(1);
    await pads.take(1);
    await pads.set(1, { buttons: { [THROTTLE]: 1 } });
    await commandWhere((command) => command.throttle > 0.9);
    await pads.set(1, { axes: { [STEERING]: -1 } });
    await commandWhere((command) => command.steering > 0.9 && command.absences === 0);
    await pads.unplug(0);
    await commandWhere((command) => command.throttle > 0.9 && command.absences === 0);
    await pads.unplug(1);
    await commandWhere((command) => command.throttle === 0 && command.absences === INPUTS_UNHEALTHY);
  });

  test('an unknown device drives only after calibration', async () => {
    await pads.plugPedals(0);
    await pads.plugWheel(1);
    await page.locator('#controls > summary').click();
    await pads.sweep(0, 0, 0, 1, 0, -1);
    await page.locator('#device', { hasText: 'unknown device' }).waitFor();
    assert.match(await page.locator('[data-testid=pad-0]').innerText(), /Unknown device\. Calibrate it/);
    await pads.sweep(0, 0, 0, 1);
    await sleep(200);
    assert.ok(standIn.commands.every(({ throttle, brake }) => throttle === 0 && brake === 0), 'it drove uncalibrated');
    await pads.sweep(0, 0, 0, -1);

    await page.locator('[data-testid=pad-0]').getByRole('button', { name: 'Calibrate' }).click();
    await commandWhere((command) => command.absences === INPUTS_UNHEALTHY);
    const asked = (words) => page.locator('#pad-asked', { hasText: words }).waitFor({ timeout: 2_000 });
    const next = () => page.locator('#pad-next').click();
    await next();
    await asked('fully left');
    await page.locator('#pad-skip').click();
    await asked('Press the throttle');
    await pads.sweep(0, 0, 0, 1);
    await next();
    await asked('release it, and only then');
    await pads.sweep(0, 0, 0, -1, 0, 1, 0, -1);
    await next();
    await asked('Press the brake');
    await pads.sweep(0, 0, 0, 1, 0, -1);
    await next();
    await asked('That is the throttle again');
    await pads.sweep(0, 1, 0, 1, 0, -1);
    await next();
    await asked('once more');
    await next();
    await asked('is calibrated');
    await commandWhere((command) => command.absences === 0);

    await pads.sweep(1, 0, -0.5);
    await pads.sweep(0, 1, 1);
    await commandWhere((command) => command.brake > 0.9 && command.throttle === 0);
    await pads.sweep(0, 1, -1);
    await pads.sweep(0, 0, 1);
    await commandWhere((command) => command.throttle > 0.9 && command.brake === 0 && command.steering > 0.4);
    assert.match(await page.locator('[data-testid=pad-0]').innerText(), /In use: throttle, brake/);
    assert.match(await page.locator('[data-testid=pad-1]').innerText(), /In use: steering/);
    await page.reload();
    await pads.plugPedals(0);
    await pads.sweep(0, 1, 0, 1);
    await commandWhere((command) => command.brake > 0.9);
  });

  test('a silent pad is reported to the guard unless keys drive', async () => {
    standIn.guard = { mode: DRIVING, speed: 5 };
    await pads.plugPad(0);
    await pads.take(0);
    const silentAt = performance.now();
    await page.locator('#banner-title', { hasText: 'Move the input device' }).waitFor({ timeout: FROZEN_MAX });
    const { at, brake } = await commandWhere((command) => command.absences === INPUTS_UNHEALTHY);
    assert.ok(at - silentAt <= FROZEN_MAX, `told after ${at - silentAt} ms`);
    assert.ok(brake > 0.25, `the brake is ${brake}`);
    // The person uses the keys, and the pad is no longer required.
    await page.keyboard.down('ArrowUp');
    await commandWhere((command) => command.throttle > 0.9 && command.absences === 0);
    await sleep(FROZEN_MAX);
    assert.equal(standIn.commands.at(-1).absences, 0);
    await page.keyboard.up('ArrowUp');
    await pads.set(0, { axes: { [STEERING]: -1 } });
    await commandWhere((command) => command.steering > 0.9 && command.absences === 0);
  });

  /** Returns the first command for which this holds, from the newest so far on. Fails after 5 s. */
  async function commandWhere(holds) {
    let from = Math.max(0, standIn.commands.length - 1);
    const end = performance.now() + 5_000;
    while (performance.now() < end) {
      for (; from < standIn.commands.length; from += 1) if (holds(standIn.commands[from])) return standIn.commands[from];
      await sleep(10);
    }
    assert.fail(`no such command; the last was ${JSON.stringify(standIn.commands.at(-1))}`);
  }
});

test('the guard brakes for a frozen pad, not for one held still', async () => {
  const demo = await startDemo(['--links', 'lan', '--pictures-per-second', '10']);
  const processes = new Processes(demo);
  try {
    // This tests inputs.
    await processes.allowDelays();
    const page = await browser.newPage({ viewport: { width: 800, height: 600 } });
    const pads = await VirtualPads.on(page);
    await openConsole(page, demo.address);
    await pads.plugPad(0);
    await inTries(4, () => holdStillAndFreeze(page, pads));
    await page.close();
  } finally {
    processes.end();
    await demo.end();
  }
});

/**
 * Holds the throttle for 10.5 s, which must not stop the machine, then releases and freezes it,
 * which must. Returns a reason if the guard stopped the machine for another one, otherwise
 * `undefined`.
 */
async function holdStillAndFreeze(page, pads) {
  const mode = () => page.locator('#mode').innerText();
  const words = () => page.locator('#banner').innerText();
  const isDriving = (said) => said === 'Driving' || said === 'Speed limited';
  const inputs = /input device was not usable/;
  await eventually(mode, (said) => said === 'Held', 15_000);
  await pads.set(0, { buttons: { [THROTTLE]: 0 } });
  await pads.take(0);
  await arm(page);
  await pads.set(0, { buttons: { [THROTTLE]: 1 } });
  const pressedAt = performance.now();
  while (performance.now() - pressedAt < 10_500) {
    const [said, why] = [await mode(), await words()];
    if (said !== 'Armed' && !isDriving(said)) {
      assert.doesNotMatch(why, inputs, `stopped after ${performance.now() - pressedAt} ms`);
      return why === '' ? said : why;
    }
    await sleep(50);
  }
  const kmh = Number(await page.locator('#hud-speed').innerText());
  assert.ok(kmh > 10, `it drives at ${kmh} km/h`);
  await pads.set(0, { buttons: { [THROTTLE]: 0 } });
  const releasedAt = performance.now();
  await eventually(mode, (said) => !isDriving(said), FROZEN_MAX + ROUND_TRIP_MAX, 20);
  const stoppedAfter = performance.now() - releasedAt;
  await eventually(words, (why) => why !== '', 1_000, 20);
  const why = await words();
  if (!inputs.test(why)) return why;
  console.log(`a pad that froze with its throttle released was braked for after ${stoppedAfter.toFixed(0)} ms, at ${kmh} km/h`);
  assert.ok(stoppedAfter > 2_000, `a person may coast for longer than ${stoppedAfter} ms without a move`);
}

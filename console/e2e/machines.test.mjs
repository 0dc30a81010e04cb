// Simulated machines that a twist moves, driven through the whole system from one page: by keys, by
// a gamepad and by two thumbs, with turns on the spot and at a held speed. Needs console/dist,
// Debian's chromium and target/release/tautline (or TAUTLINE).
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { VirtualPads } from './pads.mjs';
import { Processes, arm, eventually, launchBrowser, openConsole, startDemo } from './stand.mjs';
import { Fingers, middleOf } from './touch.mjs';

const STICK = { x: 0, y: 1, rightX: 2 };
/** More than the travel of a touch control, in CSS pixels. */
const FAR = 90;
/** Speeds in m/s and yaw rates in degrees per second that a machine reaches at least. */
const FAST = 0.4;
const TURNS = 20;
/** Longest time in ms until a machine moves as asked, or stands, on a busy computer. */
const SOON = 8_000;

let browser;
before(async () => { browser = await launchBrowser(); });
after(() => browser?.close());

/** Largest sideways speed in m/s that a machine reaches at least; `null` if it has none. */
for (const [machine, across] of [['robot', null], ['rover', null], ['cart', 0.2]]) {
  describe(`a ${machine}`, () => {
    let demo;
    let processes;
    let page;
    let pads;
    let fingers;

    before(async () => {
      demo = await startDemo(['--machine', machine, '--links', 'lan', '--pictures-per-second', '10']);
      processes = new Processes(demo);
      await processes.allowDelays();
      const context = await browser.newContext({ viewport: { width: 844, height: 390 }, hasTouch: true, isMobile: true });
      page = await context.newPage();
      pads = await VirtualPads.on(page);
      await openConsole(page, demo.address);
      fingers = await Fingers.on(page);
      await pads.plugPad(0);
      // The page knows what it drives.
      await eventually(() => page.locator('#hud-unit').innerText(), (unit) => unit === 'm/s', 15_000);
    });

    after(async () => {
      await page?.context().close();
      processes?.end();
      await demo?.end();
    });

    test('is driven and turned on the spot by keys', async () => {
      await arm(page);
      await page.keyboard.down('KeyA');
      await moves(({ forward, turn }) => turn > TURNS && Math.abs(forward) < 0.1);
      await page.locator('#road[data-way=spot]').waitFor({ timeout: SOON });
      await page.keyboard.up('KeyA');
      await stands();
      await page.keyboard.down('KeyD');
      await moves(({ turn }) => turn < -TURNS);
      await page.keyboard.up('KeyD');
      await page.keyboard.down('KeyW');
      await moves(({ forward, turn }) => forward > FAST && Math.abs(turn) < TURNS);
      await page.locator('#road[data-way=course]').waitFor({ timeout: SOON });
      await page.keyboard.up('KeyW');
      await stands();
      await page.keyboard.down('KeyS');
      await moves(({ forward }) => forward < -FAST);
      await page.keyboard.down('Space');
      await stands();
      for (const key of ['Space', 'KeyS']) await page.keyboard.up(key);
      if (across !== null) {
        await page.keyboard.down('KeyZ');
        await moves(({ sideways, forward }) => sideways > across && Math.abs(forward) < 0.1);
        await page.keyboard.up('KeyZ');
        await stands();
      }
    });

    test('is driven and turned on the spot by a gamepad', async () => {
      await arm(page);
      await pads.sweep(0, STICK.y, -1, 0);
      const turnAxis = across === null ? STICK.x : STICK.rightX;
      // Data all the time, as from a hand that is never quite still.
      await pads.set(0, { axes: { [turnAxis]: -1 }, live: true });
      await moves(({ forward, turn }) => turn > TURNS && Math.abs(forward) < 0.1);
      await pads.set(0, { axes: { [turnAxis]: 0 } });
      await stands();
      await pads.set(0, { axes: { [STICK.y]: -1 } });
      await moves(({ forward }) => forward > FAST);
      await pads.set(0, { axes: { [STICK.y]: 0 } });
      await stands();
      if (across !== null) {
        await pads.set(0, { axes: { [STICK.x]: 1 } });
        await moves(({ sideways }) => sideways < -across);
        await pads.set(0, { axes: { [STICK.x]: 0 } });
        await stands();
      }
    });

    test('is driven and turned on the spot by two thumbs', async () => {
      await arm(page);
      const [left, right] = [await middleOf(page, '#touch-left'), await middleOf(page, '#touch-right')];
      await fingers.down(1, ...right);
      await fingers.move(1, FAR, 0);
      await moves(({ forward, turn }) => turn < -TURNS && Math.abs(forward) < 0.1);
      await fingers.down(2, ...left);
      await fingers.move(2, 0, FAR);
      await moves(({ forward, turn }) => forward > FAST && turn < 0);
      await fingers.up(1);
      await moves(({ forward, turn }) => forward > FAST && Math.abs(turn) < TURNS / 2);
      await fingers.up(2);
      await stands();
      if (across !== null) {
        await fingers.down(3, ...left);
        await fingers.move(3, -FAR, 0);
        await moves(({ sideways }) => sideways > across);
        await fingers.up(3);
        await stands();
      }
    });

    test('holds a speed without a hand until it is braked, and starts at 0 after a stop', async () => {
      await page.evaluate(() => {
        const mode = document.querySelector('#speed-mode');
        mode.value = 'set point';
        mode.dispatchEvent(new Event('change'));
      });
      await arm(page);
      await page.keyboard.down('KeyW');
      await moves(({ forward }) => forward > FAST);
      await page.keyboard.up('KeyW');
      await sleep(2_000);
      await moves(({ forward }) => forward > FAST);
      await page.keyboard.press('Space');
      await stands();
      await arm(page);
      await page.keyboard.down('KeyW');
      await moves(({ forward }) => forward > FAST);
      await page.keyboard.up('KeyW');
      await page.keyboard.press('Escape');
      await stands();
      await eventually(() => page.locator('#mode').innerText(), (mode) => mode === 'Held', SOON);
      assert.match(await page.locator('#banner').innerText(), /An emergency stop was requested/);
      await page.keyboard.press('Backspace');
      await eventually(() => page.locator('#banner').innerText(), (words) => /Enter arms the vehicle/.test(words), SOON);
      await arm(page);
      await sleep(1_000);
      assert.equal(await page.locator('#mode').innerText(), 'Armed');
    });

    /** Returns what the machine reports: m/s forward and to the left, and degrees per second. */
    async function motion() {
      const [forward, sideways, turn] = await page.evaluate(
        () => ['twist-forward', 'twist-sideways', 'twist-turn'].map((id) => document.getElementById(id).textContent));
      // A machine without sideways motion shows a dash.
      return { forward: Number(forward), sideways: Number(sideways) || 0, turn: Number(turn) };
    }

    async function moves(holds) {
      const end = performance.now() + SOON;
      let last;
      do {
        last = await motion();
        if (holds(last)) return;
        await sleep(50);
      } while (performance.now() < end);
      assert.fail(`${JSON.stringify(last)}, ${await page.locator('#mode').innerText()}, ${await page.locator('#banner').innerText()}`);
    }

    async function stands() {
      await moves(({ forward, sideways, turn }) => Math.abs(forward) < 0.1 && Math.abs(sideways) < 0.1 && Math.abs(turn) <= 3);
    }
  });
}

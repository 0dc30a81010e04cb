// Simulated machines that a twist moves, driven through the whole system from one page: by keys, by
// a gamepad and by two thumbs, with turns on the spot and at a held speed; their axes and actions
// while they drive. Needs console/dist, Debian's chromium and target/release/tautline (or
// TAUTLINE).
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { VirtualPads } from './pads.mjs';
import { Processes, arm, eventually, inTries, launchBrowser, openConsole, startDemo } from './stand.mjs';
import { Fingers, middleOf } from './touch.mjs';

const STICK = { x: 0, y: 1, rightX: 2, rightY: 3 };
/** More than the travel of a touch control, in CSS pixels. */
const FAR = 90;
/** Speeds in m/s and yaw rates in degrees per second that a machine reaches at least. */
const FAST = 0.4;
const TURNS = 20;
/** Longest time in ms until a machine moves as asked, or stands, on a busy computer. */
const SOON = 8_000;
/** Words of the page for a computer that is too busy to drive. */
const LATE = new RegExp(['was too old', 'No fresh command', 'sent nothing for', 'received nothing from the guard', 'itself was late',
  'delivers? no pictures', 'is stale', 'ms old: above'].join('|'));

let browser;
before(async () => { browser = await launchBrowser(); });
after(() => browser?.close());

/**
 * Largest sideways speed in m/s that a machine reaches at least, `null` if it has none; and its
 * first axis, with a position that it passes within a second.
 */
for (const [machine, across, axis, far] of [['robot', null, 'pan', 0.6], ['rover', null, 'boom', 0.3], ['cart', 0.2, 'gripper', 0.04]]) {
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

    // A failed test must not hold down anything for the next one.
    afterEach(release);

    test('turns on the spot, brakes and goes to each side by keys', async () => {
      await driven(async () => {
        await page.keyboard.down('KeyA');
        await moves(({ forward, turn }) => turn > TURNS && Math.abs(forward) < 0.1);
        await draws('spot');
        await page.keyboard.up('KeyA');
        await page.keyboard.down('KeyD');
        await moves(({ turn }) => turn < -TURNS);
        await page.keyboard.up('KeyD');
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
    });

    test('turns on the spot and goes to each side by a gamepad', async () => {
      await driven(async () => {
        await pads.sweep(0, STICK.y, -1, 0);
        const turnAxis = across === null ? STICK.x : STICK.rightX;
        // Data all the time, as from a hand that is never quite still.
        await pads.set(0, { axes: { [turnAxis]: -1 }, live: true });
        await moves(({ forward, turn }) => turn > TURNS && Math.abs(forward) < 0.1);
        await pads.set(0, { axes: { [turnAxis]: 0 } });
        if (across !== null) {
          await pads.set(0, { axes: { [STICK.x]: 1 } });
          await moves(({ sideways }) => sideways < -across);
          await pads.set(0, { axes: { [STICK.x]: 0 } });
        }
        await stands();
      });
    });

    test('is driven and turned on the spot by two thumbs', async () => {
      await driven(async () => {
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
        if (across !== null) {
          await fingers.down(3, ...left);
          await fingers.move(3, -FAR, 0);
          await moves(({ sideways }) => sideways > across);
          await fingers.up(3);
        }
        await stands();
      });
    });

    test(`moves its ${axis} while it drives, by a key, a stick and a thumb`, async () => {
      await page.locator('#controls > summary').click();
      await page.locator(`[data-testid=assign-more-${axis}]`).click();
      await page.keyboard.press('KeyK');
      await page.locator('#assign-asked', { hasText: 'Assigned: K' }).waitFor();
      await page.locator(`[data-testid=assign-less-${axis}]`).click();
      await pads.sweep(0, STICK.rightY, 1);
      await page.locator('#assign-asked', { hasText: 'Assigned: axis 3' }).waitFor();
      await pads.sweep(0, STICK.rightY, 0);
      for (const slot of [`more-${axis}`, 'action-dock']) await page.locator(`[data-testid=on-picture-${slot}]`).check();
      await page.locator('#controls > summary').click();
      await page.evaluate(() => { document.querySelector('main').scrollTop = 0; });

      await driven(async () => {
        for (const key of ['KeyK', 'KeyW']) await page.keyboard.down(key);
        await moves(({ forward, axis: position }) => forward > FAST && position > far);
        await draws('course');
        for (const key of ['KeyK', 'KeyW']) await page.keyboard.up(key);
        await stands();
        await pads.set(0, { axes: { [STICK.y]: -1, [STICK.rightY]: 1 }, live: true });
        await moves(({ forward, axis: position }) => forward > FAST && position < far / 2);
        await pads.set(0, { axes: { [STICK.y]: 0, [STICK.rightY]: 0 } });
        await stands();
        await fingers.down(1, ...await middleOf(page, '#touch-left'));
        await fingers.move(1, 0, FAR);
        await fingers.down(2, ...await middleOf(page, '[data-testid=picture-axis-more-0]'));
        await moves(({ forward, axis: position }) => forward > FAST && position > far);
        await fingers.up(2);
        // The thumb still drives.
        const dock = page.locator('[data-testid=picture-action-6]');
        await dock.click();
        await page.locator('[data-testid=picture-action-6][data-asked=refused]').waitFor({ timeout: SOON });
        await page.locator('#banner', { hasText: 'The machine refused' }).waitFor();
        await fingers.up(1);
        await stands();
        const { axis: raised } = await motion();
        assert.ok(raised > far, `the ${axis} is at ${raised}`);
        await eventually(() => value(2), (state) => state === 'undocked', SOON);
        // The figures are rounded: a machine that shows 0 can still creep.
        await sleep(1_000);
        await dock.click();
        const asked = async () => `${await dock.getAttribute('data-asked')} ${await page.locator('#banner').innerText()}`;
        await eventually(asked, (told) => told.startsWith('done'), SOON);
        await eventually(() => value(2), (state) => state === 'docked', SOON);
      });
    });

    test(`sets its ${axis} by a slider, and keeps it and the lights while it is held`, async () => {
      await driven(async () => {
        assert.match(await value(0), /^2\d(\.\d+)? V$/);
        assert.match(await value(1), /^\d\d(\.\d+)? °C$/);
        await page.locator('[data-testid=axis-0]').fill(String(far));
        await moves(({ axis: position }) => Math.abs(position - far) < far / 20);
        if (machine === 'rover') {
          await page.locator('[data-testid=axis-more-2]').scrollIntoViewIfNeeded();
          const winch = async () => Number.parseFloat(await page.locator('[data-testid=axis-measured-2]').innerText());
          await fingers.down(1, ...await middleOf(page, '[data-testid=axis-more-2]'));
          await eventually(winch, (speed) => speed > 0.15, SOON);
          await fingers.up(1);
          await eventually(winch, (speed) => speed === 0, SOON);
          await page.evaluate(() => { document.querySelector('main').scrollTop = 0; });
        }
        await page.keyboard.press('KeyL');
        await page.locator('[data-testid=action-1][aria-pressed=true]').waitFor({ timeout: SOON });
        await page.keyboard.press('KeyP');
        await page.locator('[data-testid=axis-0]:disabled').waitFor({ timeout: SOON });
        assert.equal(await page.locator('#mode').innerText(), 'Held');
        await moves(({ axis: position }) => Math.abs(position - far) < far / 20);
        await page.locator('[data-testid=action-1][aria-pressed=true]').waitFor();
      });
    });

    // Of the page alone: the same for every machine.
    if (machine === 'robot') test('holds a speed without a hand until it is braked, and starts at 0 after a stop', async () => {
      await page.evaluate(() => {
        const mode = document.querySelector('#speed-mode');
        mode.value = 'set point';
        mode.dispatchEvent(new Event('change'));
      });
      await arm(page);
      await page.keyboard.down('KeyW');
      await moves(({ forward }) => forward > FAST);
      await page.keyboard.up('KeyW');
      await sleep(1_000);
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

    /** Releases all keys, sticks and fingers. */
    async function release() {
      for (const key of ['KeyA', 'KeyD', 'KeyW', 'KeyS', 'KeyZ', 'KeyK', 'Space']) await page.keyboard.up(key);
      await pads.set(0, { axes: { [STICK.x]: 0, [STICK.y]: 0, [STICK.rightX]: 0, [STICK.rightY]: 0 } });
      await fingers.release();
    }

    /**
     * Arms and drives. A try in which the guard stopped the machine because this computer delivered
     * pictures or commands too late says nothing, and is repeated.
     */
    async function driven(drive) {
      await inTries(4, async () => {
        await arm(page);
        try {
          await drive();
        } catch (error) {
          const told = `${await page.locator('#mode').innerText()}: ${await page.locator('#banner').innerText()}`;
          if (!LATE.test(told)) throw error;
          await release();
          return told.replaceAll('\n', ' ');
        }
      });
    }

    /**
     * Returns what the machine reports: m/s forward and to the left, degrees per second, and the
     * position of its first axis.
     */
    async function motion() {
      const shown = await page.evaluate(() => ['twist-forward', 'twist-sideways', 'twist-turn', 'axis-measured-0'].map(
        (name) => document.querySelector(`[data-testid=${name}]`)?.textContent));
      const [forward, sideways, turn, position] = shown.map((text) => Number.parseFloat(text?.replace('−', '-')));
      // A machine without sideways motion shows a dash.
      return { forward, sideways: sideways || 0, turn, axis: position };
    }

    /** Returns what the page shows of one of the machine's values. */
    async function value(index) {
      return page.locator(`[data-testid=value-${index}]`).innerText();
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

    /** Waits until the page draws this way ahead; it draws none over a late picture. */
    async function draws(way) {
      const read = () => page.evaluate(() => {
        const text = (id) => document.querySelector(id).textContent;
        const { dataset, classList } = document.querySelector('#road');
        return {
          way: classList.contains('gone') ? 'none' : dataset.way, mode: text('#mode'), speed: text('#hud-speed'), turn: text('#hud-turn'),
          delay: text('#hud-delay'), age: text('#picture-age'), banner: document.querySelector('#banner').innerText,
        };
      });
      let last;
      await eventually(async () => { last = await read(); return last.way; }, (shown) => shown === way, SOON)
        .catch(() => assert.fail(JSON.stringify(last)));
    }

    async function stands() {
      await moves(({ forward, sideways, turn }) => Math.abs(forward) < 0.1 && Math.abs(sideways) < 0.1 && Math.abs(turn) <= 3);
    }
  });
}

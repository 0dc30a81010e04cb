// Machines that a twist moves, on a page with a simulated vehicle: what keys, pads, wheels and
// thumbs send, at a speed by stick and at a held speed. Needs console/dist and Debian's chromium.
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { VirtualPads } from './pads.mjs';
import { startStandIn } from './stand-in.mjs';
import { launchBrowser } from './stand.mjs';
import { Fingers, middleOf } from './touch.mjs';

const [DIFFERENTIAL, OMNI] = [1, 2];
const DRIVING = 2;
const HELD_DEAD_MAN = 1;
/** Bounds of the simulated vehicle: m/s, m/s to the side, rad/s. */
const BOUNDS = { speedBound: 1.5, sidewaysBound: 0.5, yawRateBound: 1 };
const STICK = { x: 0, y: 1, rightX: 2 };
/** More than the travel of a touch control, in CSS pixels. */
const FAR = 90;
/** Description of a machine with three axes. */
const AXES = {
  revision: 9, axes: [['boom', 'rad', 0, -1, 2, 0.5], ['bucket', '°', 0, -60, 60, 20], ['winch', 'm/s', 1, -0.2, 0.4, 1]], actions: [], values: [],
};

let browser;
let standIn;
let page;
before(async () => { browser = await launchBrowser(); });
after(() => browser?.close());
beforeEach(async () => { standIn = await startStandIn(); });
afterEach(async () => {
  await page?.context().close();
  await standIn?.close();
});

describe('on a computer', () => {
  let pads;

  beforeEach(async () => {
    page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
    pads = await VirtualPads.on(page);
  });

  test('keys drive, turn on the spot, and send exactly 0 when they are up', async () => {
    await open(DIFFERENTIAL);
    await page.keyboard.down('KeyA');
    await sent(([forward, sideways, yawRate]) => forward === 0 && sideways === 0 && yawRate === 1);
    await page.keyboard.up('KeyA');
    await sent(isStill);
    await page.keyboard.down('ArrowUp');
    await page.keyboard.down('KeyD');
    await sent(([forward, , yawRate]) => forward === 1.5 && yawRate <= -0.5);
    await page.keyboard.down('Space');
    await sent(isStill);
    for (const key of ['Space', 'KeyD', 'ArrowUp']) await page.keyboard.up(key);
    await sent(isStill);
    await page.keyboard.down('KeyS');
    await page.keyboard.down('KeyZ');
    await sent(([forward, sideways]) => forward === -1.5 && sideways === 0);
    await page.keyboard.up('KeyS');
    await sent(isStill);
    assert.ok(standIn.commands.filter(({ twist }) => twist !== null).every(({ throttle, steering }) => throttle === 0 && steering === 0));
  });

  test('the page shows yaw rate, m/s and the keys of this machine, and no gear', async () => {
    await open(OMNI, { speed: 0.84, sideways: -0.3, yawRate: 0.5 });
    await page.locator('#hud-speed', { hasText: '0.8' }).waitFor();
    assert.equal(await page.locator('#hud-unit').innerText(), 'm/s');
    assert.equal(await page.locator('#hud-turn').innerText(), '↺ 29');
    assert.equal(await page.locator('#hud-sideways').innerText(), '0.3 →');
    for (const hidden of ['#hud-gear', '#wheel', '#steering', '#throttle']) assert.ok(!await page.locator(hidden).isVisible(), hidden);
    await page.keyboard.press('F1');
    assert.match(await page.locator('#help').innerText(), /Z\s*C\s+move sideways/);
    await page.keyboard.down('KeyC');
    await sent(([, sideways]) => sideways === -0.5);
  });

  test('one stick or two drive a differential machine, once it was released', async () => {
    await open(DIFFERENTIAL);
    await pads.plugPad(0);
    await pads.set(0, { axes: { [STICK.y]: -1 } });
    await sleep(300);
    assert.ok(standIn.commands.every(({ twist }) => twist === null || isStill(twist)), 'it drove by the move that brought the pad into use');
    await pads.sweep(0, STICK.y, 0, -1);
    await sent(([forward, , yawRate]) => forward === 1.5 && yawRate === 0);
    await pads.set(0, { axes: { [STICK.y]: 0, [STICK.x]: 1 } });
    await sent(([forward, , yawRate]) => forward === 0 && yawRate === -1);
    await pads.set(0, { axes: { [STICK.x]: 0 } });
    await sent(isStill);

    await page.locator('#controls > summary').click();
    await page.locator('[data-testid=pad-sticks-0]').selectOption('both');
    await sleep(100);
    await pads.sweep(0, STICK.x, 1);
    await pads.sweep(0, STICK.rightX, -1);
    await sent(([forward, , yawRate]) => forward === 0 && yawRate === 1);
    await pads.unplug(0);
    await sent(isStill);
  });

  test('two sticks move an omnidirectional machine to all sides and turn it', async () => {
    await open(OMNI);
    await pads.plugPad(0);
    await pads.sweep(0, STICK.y, 1, 0);
    await pads.set(0, { axes: { [STICK.y]: 1, [STICK.x]: -1, [STICK.rightX]: 1 } });
    await sent(([forward, sideways, yawRate]) => forward === -1.5 && sideways === 0.5 && yawRate === -1);
  });

  test('a wheel turns, and its pedals drive in the direction of the gear', async () => {
    await open(DIFFERENTIAL, { speed: 0 });
    await pads.plugWheel(0);
    await pads.sweep(0, 3, 0, -1, 1); // Brake.
    await pads.sweep(0, 2, 0, 1); // Throttle.
    await pads.set(0, { axes: { 0: -0.5 } });
    await sent(([forward, , yawRate]) => forward === 0 && yawRate > 0.4 && yawRate < 0.6);
    await pads.set(0, { axes: { 2: -1 } });
    await sent(([forward]) => forward === 1.5);
    await pads.set(0, { axes: { 2: 1 } });
    await sent(([forward]) => forward === 0);
    await page.keyboard.press('KeyR');
    await page.locator('#hud-direction').waitFor();
    await pads.set(0, { axes: { 2: -1 } });
    await sent(([forward]) => forward === -1.5);
    await pads.set(0, { axes: { 3: -1 } });
    await sent(isStill);
  });

  test('a held speed stays until it is changed, and ends with Space, absence, a held machine and a reload', async () => {
    await open(DIFFERENTIAL);
    await page.locator('#controls > summary').click();
    await page.locator('#speed-mode').selectOption('set point');
    const raise = async () => {
      // The page has to know that it drives when the key goes down.
      await sleep(300);
      await page.keyboard.down('KeyW');
      await sleep(700);
      await page.keyboard.up('KeyW');
      await sleep(500);
      assert.ok(newest()[0] > 0.3, `the speed is ${newest()[0]}`);
    };
    await raise();
    await page.locator('#hud-set-point', { hasText: 'set 0.' }).waitFor();
    const stays = newest()[0];
    await sleep(500);
    assert.equal(newest()[0], stays);
    await page.keyboard.down('KeyS');
    await sent(isStill);
    await page.keyboard.up('KeyS');

    await raise();
    await page.keyboard.press('Space');
    await sent(isStill);
    await raise();
    await page.evaluate(() => window.dispatchEvent(new Event('blur')));
    await sent(isStill);
    await page.evaluate(() => window.dispatchEvent(new Event('focus')));
    await sleep(300);
    assert.ok(isStill(newest()), 'the speed came back with the focus');
    await raise();
    standIn.guard = { ...standIn.guard, mode: 0 };
    await sent(isStill);
    standIn.guard = { ...standIn.guard, mode: DRIVING };
    await raise();
    await page.reload();
    await opened(DIFFERENTIAL);
    await sleep(300);
    assert.ok(isStill(newest()), 'the speed survived a reload');
    assert.equal(await page.locator('#speed-mode').inputValue(), 'set point');
  });
});

describe('on a phone', () => {
  let fingers;
  let places;

  async function openPhone(motion, viewport = { width: 844, height: 390 }) {
    page = await (await browser.newContext({ viewport, hasTouch: true, isMobile: true, deviceScaleFactor: 2 })).newPage();
    await open(motion);
    fingers = await Fingers.on(page);
    await page.locator('#touch-left').waitFor();
    places = { left: await middleOf(page, '#touch-left'), right: await middleOf(page, '#touch-right') };
  }

  test('two thumbs drive and turn at once, and lifting each sends exactly 0 of its part', async () => {
    await openPhone(DIFFERENTIAL);
    await fingers.down(1, ...places.left);
    await fingers.down(2, ...places.right);
    await sleep(100);
    assert.ok(isStill(newest()), 'a touch alone moves nothing');
    await fingers.move(1, 0, FAR);
    await fingers.move(2, -FAR, 0);
    await sent(([forward, , yawRate]) => forward === 1.5 && yawRate === 1);
    await fingers.up(1);
    await sent(([forward, , yawRate]) => forward === 0 && yawRate === 1);
    await fingers.up(2);
    await sent(isStill);
  });

  test('the left thumb moves an omnidirectional machine to all sides', async () => {
    await openPhone(OMNI, { width: 390, height: 844 });
    await fingers.down(1, ...places.left);
    await fingers.move(1, -FAR, -FAR);
    await sent(([forward, sideways, yawRate]) => forward === -1.5 && sideways === 0.5 && yawRate === 0);
  });

  test('a car is driven by throttle, brake and steering', async () => {
    await openPhone(0);
    await fingers.down(1, ...places.left);
    await fingers.down(2, ...places.right);
    await fingers.move(1, 0, FAR);
    await fingers.move(2, FAR, 0);
    await commandWhere(({ throttle, steering, twist }) => throttle === 1 && steering === -1 && twist === null);
    await fingers.move(1, 0, -2 * FAR);
    await commandWhere(({ throttle, brake }) => throttle === 0 && brake === 1);
    await fingers.up(1);
    await fingers.up(2);
    await commandWhere(({ throttle, brake, steering }) => throttle === 0 && brake === 0 && steering === 0);
  });

  test('a cancelled touch and a hidden page release both thumbs, which must be lifted first', async () => {
    await openPhone(DIFFERENTIAL);
    const push = async () => {
      await fingers.down(1, ...places.left);
      await fingers.move(1, 0, FAR);
      await sent(([forward]) => forward === 1.5);
    };
    await push();
    await fingers.cancel();
    await sent(isStill);
    await push();
    await page.evaluate(() => window.dispatchEvent(new Event('pagehide')));
    await sent(isStill);
    await page.evaluate(() => window.dispatchEvent(new Event('pageshow')));
    await fingers.move(1, 0, 5);
    await sleep(300);
    assert.ok(isStill(newest()), 'a thumb that was not lifted drove again');
    await fingers.up(1);
    await push();
  });

  test('a thumb holds the dead-man input', async () => {
    await openPhone(DIFFERENTIAL);
    await page.evaluate(() => { document.querySelector('#controls').open = true; });
    await page.locator('#dead-man').check();
    await commandWhere(({ deadMan }) => deadMan === 2);
    await page.evaluate(() => { document.querySelector('main').scrollTop = 0; });
    await fingers.down(1, ...places.left);
    await fingers.move(1, 0, FAR);
    await commandWhere(({ deadMan, twist }) => deadMan === HELD_DEAD_MAN && twist[0] === 1.5);
    await fingers.up(1);
    await commandWhere(({ deadMan, twist }) => deadMan === 2 && isStill(twist));
  });

  test('a held speed is changed by the thumb, kept without it, and ended by the button', async () => {
    await openPhone(DIFFERENTIAL);
    await page.evaluate(() => {
      const mode = document.querySelector('#speed-mode');
      mode.value = 'set point';
      mode.dispatchEvent(new Event('change'));
    });
    await fingers.down(1, ...places.left);
    await fingers.move(1, 0, FAR);
    await sent(([forward]) => forward > 0.4);
    await fingers.up(1);
    await sleep(400);
    assert.ok(newest()[0] > 0.4, 'the speed ended with the touch');
    await fingers.down(2, ...places.right);
    await fingers.move(2, FAR, 0);
    await sent(([forward, , yawRate]) => forward > 0.4 && yawRate === -1);
    await fingers.up(2);
    const [x, y] = await middleOf(page, '#touch-brake');
    await fingers.down(3, x, y);
    await fingers.up(3);
    await sent(isStill);
  });

  for (const [width, height] of [[844, 390], [390, 844], [667, 375], [360, 640], [1180, 820]]) {
    test(`all that drives is on the screen at ${width}x${height}, and nothing covers it`, async () => {
      await openPhone(OMNI, { width, height });
      standIn.guard = { ...standIn.guard, mode: 0 };
      await page.locator('#act-arm').waitFor();
      const faults = await page.evaluate(() => ['#emergency-stop', '#act-arm', '#hud-speed', '#mode', '#touch-left-knob', '#touch-right-knob'].flatMap((selector) => {
        const element = document.querySelector(selector);
        const box = element.getBoundingClientRect();
        const inside = box.width > 0 && box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight;
        const hit = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
        const hits = hit !== null && (element.contains(hit) || hit.contains(element));
        return inside && hits ? [] : [`${selector}: ${JSON.stringify(box)}, under ${hit?.id}`];
      }));
      assert.deepEqual(faults, []);
      const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wider <= 0, `the page is ${wider} px wider than its window`);
    });

    test(`three axes on the picture cover nothing and are not covered at ${width}x${height}`, async () => {
      await openPhone(OMNI, { width, height });
      standIn.guard = { ...standIn.guard, description: AXES.revision, axes: [0.5, 0, 0] };
      standIn.describe(AXES);
      await page.locator('[data-testid=on-picture-more-winch]').waitFor({ state: 'attached' });
      await page.evaluate((names) => {
        for (const name of names) document.querySelector(`[data-testid="on-picture-more-${name}"]`).click();
      }, AXES.axes.map(([name]) => name));
      await page.locator('.picture-axis:visible').nth(2).waitFor();
      await page.locator('#act-park').waitFor();
      assert.deepEqual(await overlaps(), [], 'while it drives');
      standIn.guard = { ...standIn.guard, mode: 3, cause: 4 };
      await page.locator('#mode[data-mode=limited]').waitFor();
      assert.deepEqual(await overlaps(), [], 'while its speed is limited');
      await page.evaluate(() => {
        const mode = document.querySelector('#speed-mode');
        mode.value = 'set point';
        mode.dispatchEvent(new Event('change'));
      });
      await page.locator('#touch-brake').waitFor();
      assert.deepEqual(await overlaps(), [], 'with a set point');
      standIn.guard = { ...standIn.guard, mode: 0 };
      await page.locator('#act-arm').waitFor();
      await page.locator('#banner').waitFor();
      assert.deepEqual(await overlaps(true), [], 'while it is held');
    });
  }

  /**
   * Returns the pairs of visible parts of the picture that overlap, and the parts that are not
   * completely visible; axes may be scrolled if `mayScroll`.
   */
  async function overlaps(mayScroll = false) {
    return page.evaluate((scrolls) => {
      const stage = document.querySelector('#stage').getBoundingClientRect();
      const area = document.querySelector('#picture-actions').getBoundingClientRect();
      const parts = ['#picture-age', '#mode', '#mode-reason', '.hud-speed', '#hud-turn', '#hud-delay', '#banner', '.picture-axis', '.acts button',
        '#touch-brake', '#touch-left-base', '#touch-right-base'];
      const boxes = parts.flatMap((selector) => [...document.querySelectorAll(selector)].map((element, index) => {
        const { left, top, right, bottom, width } = element.getBoundingClientRect();
        const name = `${selector} ${index}`;
        if (!scrolls || selector !== '.picture-axis') return { name, left, top, right, bottom, width };
        return { name, left, right, width, top: Math.max(top, area.top), bottom: Math.min(bottom, area.bottom) };
      })).filter(({ width }) => width > 0);
      const clipped = boxes.filter((box) => box.name.startsWith('.picture-axis') && (box.top < area.top - 0.5 || box.bottom > area.bottom + 0.5));
      const outside = boxes.filter((box) => box.left < stage.left || box.right > stage.right + 0.5 || box.top < stage.top || box.bottom > stage.bottom + 0.5);
      const pairs = boxes.flatMap((one, at) => boxes.slice(at + 1).filter((other) => one.left < other.right - 0.5
        && other.left < one.right - 0.5 && one.top < other.bottom - 0.5 && other.top < one.bottom - 0.5).map((other) => `${one.name} and ${other.name}`));
      const missing = 3 - boxes.filter(({ name }) => name.startsWith('.picture-axis')).length;
      return [...pairs, ...[...outside, ...clipped].map(({ name }) => `${name} is not completely visible`), ...(missing ? [`${missing} axes are not shown`] : [])];
    }, mayScroll);
  }
});

/** Opens the page for a machine of this kind that is driven from it. */
async function open(motion, guard = {}) {
  standIn.guard = { mode: DRIVING, motion, ...BOUNDS, loopAgeMs: 120, ...guard };
  await page.goto(standIn.address);
  await opened(motion);
}

/** Waits until the page sends commands for this kind of machine, as the console that armed it. */
async function opened(motion) {
  await commandWhere(({ absences, twist }) => absences === 0 && (twist !== null) === (motion !== 0));
  standIn.guard = { ...standIn.guard, holder: BigInt(`0x${standIn.consoles.at(-1)}`) };
}

function isStill(twist) {
  return twist.every((part) => part === 0);
}

function newest() {
  return standIn.commands.at(-1).twist;
}

/** Waits for a command with a twist for which this holds. */
async function sent(holds) {
  await commandWhere(({ twist }) => twist !== null && holds(twist.map((part) => Math.round(part * 1e4) / 1e4)));
}

/** Waits for a command for which this holds, from the newest so far on. Fails after 5 s. */
async function commandWhere(holds) {
  let from = Math.max(0, standIn.commands.length - 1);
  const end = performance.now() + 5_000;
  while (performance.now() < end) {
    for (; from < standIn.commands.length; from += 1) if (holds(standIn.commands[from])) return;
    await sleep(10);
  }
  const { twist, throttle, brake, steering, deadMan, absences } = standIn.commands.at(-1) ?? {};
  assert.fail(`no such command; the last was ${JSON.stringify({ twist, throttle, brake, steering, deadMan, absences })}`);
}

// Axes, actions and values that a machine declares, on a page with a simulated vehicle: what the
// page draws, and what it sends by its own controls, by assigned keys and by an assigned stick.
// Needs console/dist and Debian's chromium.
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { VirtualPads } from './pads.mjs';
import { startStandIn } from './stand-in.mjs';
import { launchBrowser } from './stand.mjs';

const REVISION = 7;
const [HELD, DRIVING] = [0, 2];
const DIFFERENTIAL = 1;
const REQUEST = 8;
const [BOOM, WINCH] = [0, 1];
const [HORN, LIGHTS, BLADE, DOCK] = [0, 1, 2, 3];
const ROVER = {
  revision: REVISION,
  axes: [['boom', 'rad', 0, -1, 2, 0.5], ['winch', 'm/s', 1, -0.2, 0.4, 1]],
  actions: [['horn', 0, 0, true], ['lights', 1, 1, true], ['blade', 1, 0, false], ['dock', 2, 0, false]],
  values: [['battery', 'V', 0, 24, null, 20, null], ['state', '', 1, null, null, null, null]],
};

let browser;
let standIn;
let page;
let pads;
before(async () => { browser = await launchBrowser(); });
after(() => browser?.close());

beforeEach(async () => {
  standIn = await startStandIn();
  page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
  pads = await VirtualPads.on(page);
  standIn.guard = { mode: DRIVING, motion: DIFFERENTIAL, speedBound: 1.5, yawRateBound: 1, description: REVISION, axes: [0.5, 0] };
  await page.goto(standIn.address);
  await commandWhere(({ absences, twist }) => absences === 0 && twist !== null);
  standIn.guard = { ...standIn.guard, holder: BigInt(`0x${standIn.consoles.at(-1)}`) };
  standIn.describe(ROVER);
  await page.locator('#declared').waitFor();
  await page.locator('[data-testid=axis-0]:enabled').waitFor();
});

afterEach(async () => {
  await page?.context().close();
  await standIn?.close();
});

test('the page draws what the machine declares, with the colours of its limits', async () => {
  standIn.guard = { ...standIn.guard, actions: 1 << LIGHTS };
  standIn.tellValues(REVISION, { 0: 23.5, 1: 'following the wall' });
  const value = (index) => page.locator(`[data-testid=value-${index}]`);
  await value(0).filter({ hasText: '23.5 V' }).waitFor();
  assert.equal(await value(1).innerText(), 'following the wall');
  const level = () => value(0).evaluate((cell) => cell.parentElement.dataset.level);
  assert.equal(await level(), 'warn');
  standIn.tellValues(REVISION, { 0: 19 });
  await value(0).filter({ hasText: '19 V' }).waitFor();
  assert.equal(await level(), 'alarm');
  assert.equal(await page.locator('[data-testid=axis-measured-0]').innerText(), '0.50 rad');
  await page.locator('[data-testid=action-1][aria-pressed=true]').waitFor();
  // Readings of another description say nothing here, and old ones are unknown.
  standIn.tellValues(REVISION + 1, { 0: 30 });
  await value(0).filter({ hasText: '–' }).waitFor();
  // The machine has another description, which has not arrived; then it declares nothing.
  standIn.guard = { ...standIn.guard, description: REVISION + 1 };
  await page.locator('#declared').waitFor({ state: 'hidden' });
  standIn.guard = { ...standIn.guard, description: 0 };
  await page.locator('[data-testid=action-0]').waitFor({ state: 'detached' });
});

test('sliders and buttons set axes, which a stop ends', async () => {
  await page.locator('[data-testid=axis-0]').fill('1.25');
  await commandWhere(({ axes }) => near(axes[BOOM], 1.25));
  await hold(page.locator('[data-testid=axis-more-0]'), () => commandWhere(({ axes }) => axes[BOOM] > 1.4));
  await hold(page.locator('[data-testid=axis-less-1]'), () => commandWhere(({ axes }) => near(axes[WINCH], -0.2)));
  await commandWhere(({ axes }) => axes[WINCH] === 0);
  standIn.guard = { ...standIn.guard, mode: HELD };
  await commandWhere(({ axes }) => axes.every(Number.isNaN));
  await page.locator('[data-testid=axis-0]:disabled').waitFor();
  standIn.guard = { ...standIn.guard, mode: DRIVING };
  await sleep(300);
  assert.ok(standIn.commands.at(-1).axes.every(Number.isNaN), 'a set point came back after a stop');
});

test('actions are held, switched and requested', async () => {
  await hold(page.locator('[data-testid=action-0]'), () => commandWhere(({ actions }) => actions === 1 << HORN));
  await commandWhere(({ actions }) => actions === 0);
  await page.locator('[data-testid=action-1]').click();
  await page.locator('[data-testid=action-2]').click();
  await commandWhere(({ actions }) => actions === (1 << LIGHTS | 1 << BLADE));
  await page.locator('[data-testid=action-3]').click();
  const { act } = await commandWhere((command) => command.act?.deed === REQUEST);
  assert.equal(act.stop, DOCK);
  await page.locator('[data-testid=action-3][data-asked=pending]').waitFor();
  standIn.guard = { ...standIn.guard, report: { console: standIn.guard.holder, number: act.number, outcome: 1 } };
  await page.locator('[data-testid=action-3][data-asked=done]').waitFor();
  // A switch that a stop turns off stays off, and the held machine does not allow it.
  standIn.guard = { ...standIn.guard, mode: HELD };
  await commandWhere(({ actions }) => actions === 1 << LIGHTS);
  await page.locator('[data-testid=action-2]:disabled').waitFor();
});

test('a key and a stick are assigned in the settings, and act only after a release', async () => {
  await pads.plugPad(0);
  await page.locator('#controls > summary').click();
  await page.locator('[data-testid=assign-action-dock]').click();
  await page.keyboard.press('KeyW');
  await page.locator('#assign-asked', { hasText: 'has a function already' }).waitFor();
  await commandWhere(({ absences }) => absences !== 0);
  await page.keyboard.press('KeyK');
  await page.locator('#assign-asked', { hasText: 'Assigned: K' }).waitFor();
  await page.locator('[data-testid=assign-more-boom]').click();
  await pads.sweep(0, 1, -1);
  await page.locator('#assign-asked', { hasText: 'used for driving already' }).waitFor();
  await pads.sweep(0, 1, 0);
  await pads.sweep(0, 3, -1);
  await page.locator('#assign-asked', { hasText: 'Assigned: axis 3' }).waitFor();
  await sleep(300);
  assert.ok(standIn.commands.at(-1).axes.every(Number.isNaN), 'the stick acts that was pushed to assign it');
  await pads.sweep(0, 3, 0, -1);
  await commandWhere(({ axes }) => axes[BOOM] > 0.6);
  await pads.sweep(0, 3, 0);
  await page.keyboard.press('KeyK');
  await commandWhere(({ act }) => act?.deed === REQUEST);

  await page.reload();
  await commandWhere(({ absences, twist }) => absences === 0 && twist !== null);
  standIn.guard = { ...standIn.guard, holder: BigInt(`0x${standIn.consoles.at(-1)}`) };
  standIn.describe(ROVER);
  await page.locator('[data-testid=axis-0]:enabled').waitFor();
  await page.keyboard.press('KeyK');
  await commandWhere(({ act }) => act?.deed === REQUEST);
});

test('an action and an axis have buttons on the picture if that is chosen', async () => {
  await page.locator('#controls > summary').click();
  await page.locator('[data-testid=on-picture-action-dock]').check();
  await page.locator('[data-testid=picture-action-3]').click();
  await commandWhere(({ act }) => act?.deed === REQUEST && act.stop === DOCK);
  assert.ok(!await page.locator('[data-testid=picture-action-0]').isVisible());
  await page.locator('[data-testid=on-picture-more-boom]').check();
  await hold(page.locator('[data-testid=picture-axis-less-0]'), () => commandWhere(({ axes }) => axes[BOOM] < 0.4));
  assert.ok(!await page.locator('[data-testid=picture-axis-less-1]').isVisible());
});

test('an absence releases the horn and ends the winch', async () => {
  await page.keyboard.down('KeyH');
  await commandWhere(({ actions }) => actions === 1 << HORN);
  await page.locator('[data-testid=axis-0]').fill('1');
  await commandWhere(({ axes }) => axes[BOOM] === 1);
  await page.evaluate(() => window.dispatchEvent(new Event('blur')));
  await commandWhere(({ actions, axes }) => actions === 0 && axes.every(Number.isNaN));
  await page.keyboard.up('KeyH');
});

function near(value, wanted) {
  return Math.abs(value - wanted) < 1e-3;
}

/** Holds the mouse button down on an element until `done` resolves. */
async function hold(locator, done) {
  await locator.scrollIntoViewIfNeeded();
  const { x, y, width, height } = await locator.boundingBox();
  await page.mouse.move(x + width / 2, y + height / 2);
  await page.mouse.down();
  await done();
  await page.mouse.up();
}

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

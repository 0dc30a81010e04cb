// A car's lights and horn. The steering check after arming: the page offers it, the wheels turn,
// and a person who sees a mirrored picture latches a stop, which the black box records and only a
// reset ends.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, before, test } from 'node:test';
import { BINARY, arm, eventually, launchBrowser, openConsole, startDemo } from './stand.mjs';

/** Angle in degrees that the wheels pass to each side. */
const TURNED = 2;

let demo;
let browser;
let page;

before(async () => {
  demo = await startDemo(['--links', 'lan', '--pictures-per-second', '20']);
  browser = await launchBrowser();
  page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await openConsole(page, demo.address);
});

after(async () => {
  await browser?.close();
  await demo?.end();
});

test('lights and indicators are switched while the car is held, and the horn while a key is down', async () => {
  await shows('horn', false);
  await page.keyboard.down('KeyH');
  await shows('horn', true);
  await page.keyboard.up('KeyH');
  await page.keyboard.press('KeyL');
  await page.locator('[data-testid=action-3]', { hasText: 'left' }).click();
  for (const lamp of ['lights', 'left']) await shows(lamp, true);
  await page.keyboard.press('Period');
  await shows('right', true);
  for (const lamp of ['left', 'horn', 'high beam', 'hazard']) await shows(lamp, false);
  await page.keyboard.press('Period');
  await shows('right', false);
});

test('the steering check is offered, and turns the wheels left, then right', async () => {
  await arm(page);
  await says('Armed', /The steering has not been checked yet/);
  await turnWheels();
});

test('a mirrored picture latches a stop that only a reset ends', async () => {
  await page.locator('#banner-other', { hasText: 'Mirrored or wrong' }).click();
  await says('Held after a stop', /The steering check failed/);
  assert.equal(await page.locator('#mode').innerText(), 'Held');
  for (const lamp of ['lights', 'hazard']) await shows(lamp, true);
  await page.keyboard.press('Enter');
  await says('Not armed', /./);
  await eventually(() => recorded('show'), (text) => /Armed\s+Held\s+SteeringWrong/.test(text), 5_000);
  await page.keyboard.press('Backspace');
  await says('Held', /Enter arms the vehicle/);
});

test('the check is offered again until the picture agrees', async () => {
  await arm(page);
  await shows('hazard', false);
  await says('Armed', /The steering has not been checked yet/);
  await turnWheels();
  await page.locator('#banner-action', { hasText: 'Yes' }).click();
  await eventually(async () => await words('detail'), (text) => text === 'Press the throttle to drive.', 5_000);
});

/** Waits until the car reports an action as on or off. */
async function shows(name, isOn) {
  await page.locator(`#declared-actions button[aria-pressed=${isOn}]`, { hasText: name }).waitFor({ timeout: 5_000 });
}

/** Lets the wheels turn, and waits until the page asks what was seen. */
async function turnWheels() {
  await page.locator('#banner-action', { hasText: 'Turn the wheels' }).click();
  const angle = async () => Number.parseFloat((await page.locator('#steering').innerText()).replace('−', '-'));
  await eventually(angle, (degrees) => degrees > TURNED, 5_000, 10);
  await eventually(angle, (degrees) => degrees < -TURNED, 5_000, 10);
  await says('Did the wheels turn left, then right?', /./);
}

async function words(part) {
  return page.locator(`#banner-${part}`).textContent();
}

async function says(title, detail) {
  const read = async () => JSON.stringify([await words('title'), await words('detail')]);
  await eventually(read, (json) => {
    const [told, why] = JSON.parse(json);
    return told === title && detail.test(why);
  }, 10_000);
}

/** Returns what `tautline blackbox` prints of this demo. */
function recorded(action) {
  const read = spawnSync(BINARY, ['blackbox', action, demo.blackbox]);
  return `${read.stdout}${read.stderr}`;
}

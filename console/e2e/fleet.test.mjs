// A person picks one of two vehicles on the page, drives it, and picks the other; somebody else
// only watches.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { BINARY, arm, eventually, freePort, launchBrowser, openConsole } from './stand.mjs';

let folder;
let browser;
let page;
let operator;
let metrics;
const children = [];

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tautline-fleet-'));
  const [board, udp, console_, far] = [await freePort(), await freePort(), await freePort(), await freePort()];
  metrics = { 'car-1': await freePort(), mule: await freePort() };
  const home = join(folder, 'home');
  execFileSync(BINARY, ['init', home, '--switchboard', `127.0.0.1:${board}`, '--dead-man', 'no']);
  const settings = (role, file = role) => readFileSync(join(home, role, `${file}.toml`), 'utf8');
  // The mule is like car-1, with a key of its own.
  mkdirSync(join(home, 'mule'));
  const mule = execFileSync(BINARY, ['keys', 'new', join(home, 'mule', 'vehicle.key')], { encoding: 'utf8' }).match(/[0-9a-f]{64}/)[0];
  for (const file of ['guard', 'machine']) writeFileSync(join(home, 'mule', `${file}.toml`), settings('vehicle', file));
  const places = { 'car-1': 'north yard', mule: 'gate 3' };
  for (const [name, at] of [['car-1', 'vehicle'], ['mule', 'mule']]) {
    const own = settings('vehicle').replace('"car-1"', `"${name}"`);
    const more = `links = ["127.0.0.1:0"]\nplace = "${places[name]}"\npictures_per_second = 10\nmetrics = "127.0.0.1:${metrics[name]}"\n`;
    writeFileSync(join(home, at, 'own.toml'), own + more);
  }
  const listed = settings('switchboard').replace('[vehicles]\n', `[vehicles]\nmule = "${mule}"\n`);
  writeFileSync(join(home, 'switchboard', 'switchboard.toml'), listed);
  // No vehicle is configured: a person picks one.
  const own = settings('operator').split('\n').filter((line) => !/^(vehicle|vehicle_key|console) =/.test(line)).join('\n');
  writeFileSync(join(home, 'operator', 'operator.toml'), `${own}\nwatch = true\nlinks = ["127.0.0.1:${udp}"]\n` +
    `advertise = ["127.0.0.1:${udp}"]\nconsole = "127.0.0.1:${console_}"\nmetrics = "127.0.0.1:${far}"\n[vehicles]\nmule = "${mule}"\n`);
  start('switchboard', join(home, 'switchboard', 'switchboard.toml'));
  for (const at of ['vehicle', 'mule']) {
    start('guard', join(home, at, 'guard.toml'));
    start('machine', join(home, at, 'machine.toml'));
    start('vehicle', join(home, at, 'own.toml'));
  }
  operator = start('operator', join(home, 'operator', 'operator.toml'));
  operator.metrics = far;
  browser = await launchBrowser();
  const address = await printed(/^Open +(\S+)/m);
  page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await openConsole(page, address);
});

after(async () => {
  await browser?.close();
  // The vehicles first, because they stop their machines.
  for (const child of children.toReversed()) child.kill('SIGTERM');
  await Promise.all(children.map((child) => child.ended));
  rmSync(folder, { recursive: true, force: true });
});

test('vehicles are listed with place, state, links and round trip', async () => {
  await page.locator('#fleet').waitFor({ timeout: 10_000 });
  await eventually(() => row('mule'), (words) => /gate 3[^]*free[^]*1 link[^]*\d ms/.test(words), 15_000);
  await eventually(() => row('car-1'), (words) => /north yard[^]*free/.test(words), 15_000);
  assert.equal(await page.locator('#session').innerText(), 'pick a vehicle');
  assert.match(await page.locator('#fleet-switchboard').innerText(), /^switchboard, round trip [\d.]+ ms$/);
  assert.ok(await page.locator('#emergency-stop').isDisabled(), 'there is nothing to stop');
  assert.match(await told('waiting_for{what="choice"}'), / 1\.0$/m);
  for (const [width, height] of [[1440, 900], [800, 700]]) {
    await page.setViewportSize({ width, height });
    const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wider <= 0, `the page is ${wider} px wider than its window of ${width}`);
    for (const name of ['mule', 'car-1']) assert.ok(await vehicle(name).isVisible());
    if (process.env.SHOTS) await page.screenshot({ path: join(process.env.SHOTS, `fleet-${width}.png`) });
  }
  await page.setViewportSize({ width: 1440, height: 900 });
});

test('an unknown name is refused with one word', async () => {
  // A forged message, as a malicious page would send it.
  await forge('nobody');
  await eventually(() => page.locator('#fleet-refused').innerText(), (words) => /^nobody – unknown:/.test(words), 5_000);
  // The other console has driven for a moment, and is gone.
  await page.locator('#banner-action', { hasText: 'Drive' }).click();
  await eventually(() => vehicle('mule').isEnabled(), (enabled) => enabled, 5_000);
});

test('the picked vehicle is driven', async () => {
  await vehicle('mule').focus();
  await page.keyboard.press('Enter');
  await eventually(() => page.locator('#vehicle').innerText(), (name) => name === 'mule', 5_000);
  await page.locator('#fleet').waitFor({ state: 'hidden' });
  await drive('mule');
  assert.ok(await page.locator('#leave').isDisabled(), 'not while it moves');
});

test('a watcher sees the telemetry and cannot move or stop anything', async () => {
  const watcher = await (await browser.newContext({ viewport: { width: 1000, height: 700 } })).newPage();
  await openConsole(watcher, await printed(/^Watch +(\S+)/m));
  await eventually(() => watcher.locator('#banner-title').innerText(), (title) => title === 'Watching', 5_000);
  // If the machine is too busy to draw, the guard stops the vehicle meanwhile.
  let seen = '';
  for (let tries = 0; tries < 40 && !(Number(seen) > 3); tries += 1) {
    if (tries % 10 === 0) await drive('mule');
    // Before the first telemetry it is not a number.
    seen = await watcher.locator('#hud-speed').innerText();
    await watcher.waitForTimeout(50);
  }
  assert.ok(Number(seen) > 3, `the watcher saw ${seen} km/h`);
  assert.equal(await watcher.locator('#vehicle').innerText(), 'mule');
  assert.equal(await watcher.locator('#banner-action').isVisible(), false, 'nothing to press');
  assert.ok(await watcher.locator('#emergency-stop').isDisabled());
  const before = await refused();
  await watcher.keyboard.press('Escape');
  await watcher.keyboard.press('Enter');
  await watcher.keyboard.down('ArrowDown');
  // Forged messages: to drive, to leave, an emergency stop.
  await watcher.evaluate(speakAlone, [[5, 1], [8], [1, 0, 0, 0], [7, 120]]);
  await eventually(refused, (count) => count >= before + 4, 5_000);
  // Nothing is latched and nobody else drives: it continues as before.
  await drive('mule');
  assert.equal(await page.locator('#vehicle').innerText(), 'mule');
  assert.equal(await watcher.locator('#latency-p50').innerText(), '–', 'no picture comes');
  await watcher.context().close();
});

test('a parked vehicle is released and another one driven', async () => {
  await page.keyboard.up('ArrowUp');
  await page.keyboard.down('Space');
  await eventually(() => speed('mule'), (metres) => Math.abs(metres) < 0.02, 15_000);
  await page.keyboard.up('Space');
  await page.keyboard.press('KeyP');
  await eventually(() => page.locator('#leave').isEnabled(), (enabled) => enabled, 10_000);
  await page.locator('#leave').click();
  await page.locator('#fleet').waitFor({ timeout: 5_000 });
  assert.equal(await page.locator('#vehicle').innerText(), 'no vehicle');
  await eventually(() => row('mule'), (words) => /free/.test(words), 5_000);
  await vehicle('car-1').click();
  await eventually(() => page.locator('#vehicle').innerText(), (name) => name === 'car-1', 5_000);
  await drive('car-1');
  await page.keyboard.up('ArrowUp');
  assert.ok(Math.abs(await speed('mule')) < 0.02, 'the first one stands');
});

/**
 * Waits for pictures, then arms and accelerates until the vehicle itself reports more than 1.5 m/s.
 * If its guard stops it, it is armed again. Fails after 60 s.
 */
async function drive(name) {
  await eventually(async () => Number.parseFloat(await page.locator('#picture-rate').innerText()), (rate) => rate > 0, 30_000);
  const end = performance.now() + 60_000;
  do {
    assert.ok(performance.now() < end, `${name} does not drive: ${await page.locator('#banner').innerText()}`);
    await page.keyboard.up('ArrowUp');
    await arm(page);
    await page.keyboard.down('ArrowUp');
    await eventually(() => speed(name), (metres) => metres > 1.5, 4_000).catch(() => {});
  } while (await speed(name) <= 1.5);
}

function vehicle(name) {
  return page.locator(`[data-testid="vehicle-${name}"]`);
}

function row(name) {
  return vehicle(name).innerText({ timeout: 5_000 }).catch(() => '');
}

/** Picks a vehicle through a second connection of this browser, instead of the page's own. */
async function forge(name) {
  await page.evaluate(speakAlone, [[7, ...Buffer.from(name)]]);
}

/** Runs in the page: sends these messages as a separate console, which first asks to drive. */
async function speakAlone(messages) {
  const socket = new WebSocket(`ws://${location.host}/ws?console=f0f0`);
  await new Promise((resolve) => { socket.onopen = resolve; });
  // Before a vehicle is picked, another console drives at once; this one asks first.
  socket.send(Uint8Array.of(5, 1));
  for (const message of messages) socket.send(Uint8Array.from(message));
  await new Promise((resolve) => { setTimeout(resolve, 500); });
  socket.close();
}

function start(role, settings) {
  const child = spawn(BINARY, [role, '--config', settings], { stdio: ['ignore', 'pipe', 'pipe'] });
  child.words = '';
  child.logged = '';
  child.stdout.on('data', (chunk) => { child.words += chunk; });
  child.stderr.on('data', (chunk) => { child.logged += chunk; });
  child.ended = new Promise((resolve) => { child.once('exit', resolve); });
  child.once('exit', (code) => {
    if (code) console.log(`${role} ended: ${child.logged.trimEnd().split('\n').slice(-3).join(' | ')}`);
  });
  children.push(child);
  return child;
}

/** Returns the first group of the operator's newest printed line that matches. */
async function printed(line) {
  const words = await eventually(() => operator.words, (text) => line.test(text), 15_000);
  return [...words.matchAll(new RegExp(line, 'gm'))].at(-1)[1];
}

/** Returns a vehicle's own speed in m/s, 0 before it reports one. */
async function speed(name) {
  const text = await (await fetch(`http://127.0.0.1:${metrics[name]}/metrics`)).text();
  return Number(/^tautline_vehicle_speed_metres_per_second (\S+)/m.exec(text)?.[1] ?? 0);
}

/** Returns the line of the operator's metrics that begins with this name, or "". */
async function told(name) {
  const text = await (await fetch(`http://127.0.0.1:${operator.metrics}/metrics`)).text();
  return text.split('\n').find((line) => line.startsWith(`tautline_operator_${name}`)) ?? '';
}

/**
 * Returns the number of messages that the operator refused because their console does not drive.
 */
async function refused() {
  const text = await (await fetch(`http://127.0.0.1:${operator.metrics}/metrics`)).text();
  return Number(/^tautline_operator_drops_total\{name="console: message of one that does not drive"\} (\d+)/m.exec(text)?.[1] ?? 0);
}

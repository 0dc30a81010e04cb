// Idle connections to the console while a person drives: the drive continues, the connections end
// by their time limit, and another browser is served meanwhile. CONNECTIONS=5000 opens more.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, readdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Processes, arm, eventually, inTries, launchBrowser, openConsole, startDemo } from './stand.mjs';

const CONNECTIONS = Number(process.env.CONNECTIONS ?? 1_010);
/** Longer than the console's limit for an idle connection. */
const HELD_MS = 7_000;
const SPEED = 4;

let demo;
let browser;
let page;
let carsMetrics;

before(async () => {
  demo = await startDemo(['--links', 'lan', '--pictures-per-second', '20']);
  const settings = await readFile(new Processes(demo).settings('machine'), 'utf8');
  carsMetrics = `http://${/^metrics = "([^"]*)"/m.exec(settings)[1]}/metrics`;
  browser = await launchBrowser();
  page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await openConsole(page, demo.address);
});

after(async () => {
  await browser?.close();
  await demo?.end();
});

test(`${CONNECTIONS} idle connections stop no drive and end by themselves`, async () => {
  await inTries(6, async () => {
    const undriven = await drive();
    if (undriven !== undefined) return undriven;
    const before = await files();
    const idle = await crowd();
    let [most, slowest, answered] = [0, 0, 0];
    const end = performance.now() + HELD_MS;
    let reason;
    while (performance.now() < end && reason === undefined) {
      const { hazard, speed } = await car();
      if (hazard === 1 || speed < SPEED / 2) reason = `the car stops: ${await told()}`;
      most = Math.max(most, await files());
      const asked = performance.now();
      const { status } = await fetch(`http://${demo.host}/`, { headers: { Connection: 'close' } });
      slowest = Math.max(slowest, performance.now() - asked);
      assert.equal(status, 401);
      answered += 1;
      await sleep(100);
    }
    await brake();
    const left = idle.filter((socket) => !socket.ended).length;
    console.log(`${CONNECTIONS} idle connections while driving: ${before} files before, at most ${most}; ${answered} other ` +
      `requests were answered, the slowest within ${slowest.toFixed(0)} ms; ${left} connections after ${HELD_MS} ms`);
    idle.forEach((socket) => socket.destroy());
    if (reason !== undefined) return reason;
    assert.equal(left, 0);
    await eventually(files, (count) => count <= before + 2, 5_000);
    return undefined;
  });
});

/** Opens the connections; `ended` is set on each that the console closes. */
async function crowd() {
  const [host, port] = demo.host.split(':');
  const sockets = [];
  for (let at = 0; at < CONNECTIONS; at += 1) {
    const socket = connect(Number(port), host);
    for (const event of ['end', 'error', 'close']) socket.on(event, () => { socket.ended = true; });
    socket.resume();
    sockets.push(socket);
    if (at % 50 === 49) await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
  }
  return sockets;
}

/** Returns how many files the operator's process has open. */
async function files() {
  return (await readdir(`/proc/${demo.processes.operator}/fd`)).length;
}

/** Arms and drives; returns why the car did not reach this speed, on a machine too busy for it. */
async function drive() {
  await page.keyboard.up('ArrowUp');
  await arm(page);
  await page.keyboard.down('ArrowUp');
  const end = performance.now() + 10_000;
  while (performance.now() < end) {
    const { speed, hazard } = await car();
    if (speed > SPEED) return undefined;
    if (hazard === 1) break;
    await sleep(10);
  }
  return `no ${SPEED} m/s: ${await told()}`;
}

/** Returns the guard's mode and the reason for it, once the page shows them. */
async function told() {
  await sleep(500);
  return `${await page.locator('#mode').innerText()}, ${await page.locator('#banner').innerText()}`.replaceAll('\n', ' ');
}

async function brake() {
  await page.keyboard.up('ArrowUp');
  await page.keyboard.down('Space');
  await eventually(async () => (await car()).speed, (speed) => speed === 0, 20_000);
  await page.keyboard.up('Space');
}

async function car() {
  const text = await (await fetch(carsMetrics)).text();
  const number = (name) => Number(new RegExp(`^tautline_machine_${name} (\\S+)$`, 'm').exec(text)[1]);
  return { speed: number('speed_metres_per_second'), hazard: number('hazard') };
}

// The robot of the ROS 2 package, driven from a page through the whole system, with real DDS
// between its nodes. Needs what machines.mjs does, and in ROS_PYTHON a Python with rclpy and
// the package tautline; `make ros` sets it.
import { spawn } from 'node:child_process';
import { readFileSync, readdirSync, rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { after, before, describe, test } from 'node:test';
import { dirname, join, resolve } from 'node:path';
import assert from 'node:assert/strict';
import { Processes, arm, eventually, freePort, launchBrowser, openConsole, startDemo } from './stand.mjs';

const PYTHON = process.env.ROS_PYTHON;
const PACKAGE = resolve('../ros2/tautline_ros');
/** Domain of DDS of this test. */
const DOMAIN = 59;
/** Longest time in ms until the robot moves as asked, or stands, on a busy computer. */
const SOON = 8_000;
/** Longest time in ms until DDS passes pictures on. */
const SEEN = 30_000;
/** Pictures per second of the robot's camera. */
const RATE = 15;

describe('a ROS 2 robot', { skip: PYTHON ? false : 'needs ROS_PYTHON' }, () => {
  let browser;
  let demo;
  let processes;
  let page;
  let folder;
  const nodes = {};

  before(async () => {
    clear();
    browser = await launchBrowser();
    folder = await mkdtemp(join(tmpdir(), 'tautline-ros2-'));
    const camera = join(folder, 'camera.sock');
    demo = await startDemo(['--machine', 'robot', '--links', 'lan', '--camera', `unix:${camera}`]);
    processes = new Processes(demo);
    await processes.allowDelays();
    await processes.kill('machine');
    const heartbeat = `127.0.0.1:${await freePort()}`;
    const settings = processes.settings('guard');
    const path = /^machine = "(.*)"$/m.exec(readFileSync(settings, 'utf8'))[1];
    const guard = resolve(dirname(settings), path);
    start('sim_robot', { pictures_per_second: RATE });
    start('camera', { camera, pictures_per_second: `${RATE}.0` }, ['-r', 'image:=camera/image_raw']);
    start('stop', { heartbeat });
    start('machine', { heartbeat, guard, robot: `${PACKAGE}/config/robot.yaml` });
    page = await (await browser.newContext()).newPage();
    await openConsole(page, demo.address);
    await eventually(() => page.locator('#hud-unit').innerText(), (unit) => unit === 'm/s', 15_000);
  });

  after(async () => {
    for (const node of Object.values(nodes)) node.kill('SIGKILL');
    await page?.context().close();
    processes?.end();
    await demo?.end();
    await browser?.close();
    if (folder) await rm(folder, { recursive: true, force: true });
  });

  test('is seen through its own camera', async () => {
    await eventually(() => page.evaluate(drawn), ({ width, colours }) => width === 352 && colours > 3, SEEN);
    assert.equal(await page.locator('#hud-source').isVisible(), false);
  });

  test('is driven and turned on the spot by keys', async () => {
    await arm(page);
    await page.keyboard.down('KeyA');
    const { picture } = await page.evaluate(drawn);
    await moves(({ forward, turn }) => turn > 20 && Math.abs(forward) < 0.1);
    await eventually(() => page.evaluate(drawn), (now) => now.picture !== picture, SOON);
    await page.keyboard.up('KeyA');
    await stands();
    await page.keyboard.down('KeyW');
    await moves(({ forward }) => forward > 0.4);
    await page.keyboard.up('KeyW');
    await stands();
    await page.keyboard.down('KeyS');
    await moves(({ forward }) => forward < -0.3);
    await page.keyboard.up('KeyS');
    await stands();
  });

  test('is stopped when its machine node is killed, and driven again with another one', async () => {
    await arm(page);
    await page.keyboard.down('KeyW');
    await moves(({ forward }) => forward > 0.4);
    nodes.machine.kill('SIGKILL');
    await eventually(() => page.locator('#mode').innerText(), (mode) => mode !== 'Driving', SOON);
    await page.keyboard.up('KeyW');
    start(...nodes.machine.started);
    await eventually(() => page.locator('#mode').innerText(), (mode) => mode === 'Held', SOON);
    await stands();
    await arm(page);
    await page.keyboard.down('KeyW');
    await moves(({ forward }) => forward > 0.4);
    await page.keyboard.up('KeyW');
    await stands();
  });

  test('is stopped when its camera node ends, which the page tells, and driven again with another one', async () => {
    await arm(page);
    await page.keyboard.down('KeyA');
    await moves(({ turn }) => turn > 20);
    nodes.camera.kill('SIGTERM');
    await stands();
    await page.keyboard.up('KeyA');
    await eventually(() => page.locator('#banner').innerText(), (words) => words.includes('No pictures: '), SOON);
    start(...nodes.camera.started);
    await eventually(() => page.locator('#banner').innerText(), (words) => words.includes('Enter arms the vehicle'), SEEN);
    await arm(page);
    await page.keyboard.down('KeyA');
    await moves(({ turn }) => turn > 20);
    await page.keyboard.up('KeyA');
    await stands();
  });

  function start(name, parameters, more = []) {
    const given = Object.entries(parameters).flatMap(([key, value]) => ['-p', `${key}:=${value}`]);
    const code = `from tautline_ros.${name} import main; main()`;
    const path = [PACKAGE, process.env.PYTHONPATH].filter(Boolean).join(':');
    const env = { ...process.env, PYTHONPATH: path, ROS_DOMAIN_ID: String(DOMAIN), ROS_AUTOMATIC_DISCOVERY_RANGE: 'LOCALHOST' };
    nodes[name] = spawn(PYTHON, ['-c', code, '--ros-args', ...given, ...more], { env, stdio: ['ignore', 'inherit', 'inherit'] });
    nodes[name].started = [name, parameters, more];
  }

  /** Returns what the robot reports: m/s forward, and degrees per second. */
  async function motion() {
    const [forward, turn] = await page.evaluate(
      () => ['twist-forward', 'twist-turn'].map((id) => document.getElementById(id).textContent));
    return { forward: Number(forward), turn: Number(turn) };
  }

  async function moves(holds) {
    const read = async () => ({ ...await motion(), mode: await page.locator('#mode').innerText() });
    let last;
    await eventually(async () => { last = await read(); return last; }, holds, SOON)
      .catch(() => assert.fail(JSON.stringify(last)));
  }

  async function stands() {
    await moves(({ forward, turn }) => Math.abs(forward) < 0.1 && Math.abs(turn) <= 3);
  }
});

/**
 * Removes the ports of the domain from shared memory: a process that was killed while it held a
 * port's lock would block the port for later tests.
 */
function clear() {
  const first = 7_400 + 250 * DOMAIN;
  for (const file of readdirSync('/dev/shm')) {
    const port = /fast.*_port(\d+)/.exec(file)?.[1];
    if (port >= first && port < first + 250) rmSync(join('/dev/shm', file), { force: true });
  }
}

/** Runs in the page: returns the width of the picture, the number of its colours, and a digest. */
function drawn() {
  const canvas = document.querySelector('canvas#picture');
  const copy = new OffscreenCanvas(48, 27);
  const context = copy.getContext('2d');
  context.drawImage(canvas, 0, 0, 48, 27);
  // Without the stamp at the top.
  const { data } = context.getImageData(0, 3, 48, 24);
  const colours = new Set();
  for (let at = 0; at < data.length; at += 4) colours.add(`${data[at] >> 4} ${data[at + 1] >> 4} ${data[at + 2] >> 4}`);
  return { width: canvas.width, colours: colours.size, picture: data.map((value) => value >> 4).join('') };
}

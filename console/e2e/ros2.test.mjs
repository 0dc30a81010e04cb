// The robot of the ROS 2 package, driven from a page through the whole system, with real DDS
// between its nodes. Needs what machines.mjs does, and in ROS_PYTHON a Python with rclpy and
// the package tautline; `make ros` sets it.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { dirname, resolve } from 'node:path';
import assert from 'node:assert/strict';
import { Processes, arm, eventually, freePort, launchBrowser, openConsole, startDemo } from './stand.mjs';

const PYTHON = process.env.ROS_PYTHON;
const PACKAGE = resolve('../ros2/tautline_ros');
/** Longest time in ms until the robot moves as asked, or stands, on a busy computer. */
const SOON = 8_000;

describe('a ROS 2 robot', { skip: PYTHON ? false : 'needs ROS_PYTHON' }, () => {
  let browser;
  let demo;
  let processes;
  let page;
  const nodes = {};

  before(async () => {
    browser = await launchBrowser();
    demo = await startDemo(['--machine', 'robot', '--links', 'lan', '--pictures-per-second', '10']);
    processes = new Processes(demo);
    await processes.allowDelays();
    await processes.kill('machine');
    const heartbeat = `127.0.0.1:${await freePort()}`;
    const settings = processes.settings('guard');
    const path = /^machine = "(.*)"$/m.exec(readFileSync(settings, 'utf8'))[1];
    const guard = resolve(dirname(settings), path);
    start('sim_robot', {});
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
  });

  test('is driven and turned on the spot by keys', async () => {
    await arm(page);
    await page.keyboard.down('KeyA');
    await moves(({ forward, turn }) => turn > 20 && Math.abs(forward) < 0.1);
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

  function start(name, parameters) {
    const given = Object.entries(parameters).flatMap(([key, value]) => ['-p', `${key}:=${value}`]);
    const code = `from tautline_ros.${name} import main; main()`;
    const path = [PACKAGE, process.env.PYTHONPATH].filter(Boolean).join(':');
    const env = { ...process.env, PYTHONPATH: path, ROS_DOMAIN_ID: '59', ROS_AUTOMATIC_DISCOVERY_RANGE: 'LOCALHOST' };
    nodes[name] = spawn(PYTHON, ['-c', code, '--ros-args', ...given], { env, stdio: ['ignore', 'inherit', 'inherit'] });
    nodes[name].started = [name, parameters];
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

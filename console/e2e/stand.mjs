// Shared by the tests of the whole system: a running demo, a browser, ways to wait.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { appendFile, mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium } from 'playwright-core';

export const BINARY = process.env.TAUTLINE ?? '../target/release/tautline';
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
// Well-known services use lower ports.
const FIRST_PORT = 10_000;
const PROCESS_PAIRS = 64;
let pairs = 0;

/**
 * Starts `tautline demo`. `address` is the printed address, valid once; `host` is its part that
 * others may know. `another()` waits for the address of the next browser. `words()` returns the
 * output so far, `processes` has the process ids by name, and `metrics` is the address of the
 * vehicle's metrics. `blackbox` is a folder that exists until the end. `end()` stops the demo and
 * returns its exit code.
 */
export async function startDemo(flags, at = '127.0.0.1') {
  const port = await freePort();
  const blackbox = await mkdtemp(join(tmpdir(), 'tautline-blackbox-'));
  const child = spawn(BINARY, ['demo', '--console', `${at}:${port}`, '--blackbox', blackbox, ...flags],
    { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = new Promise((resolve) => { child.once('exit', resolve); });
  let words = '';
  child.stdout.on('data', (chunk) => { words += chunk; });
  let ended = false;
  void exited.then(() => { ended = true; });
  await eventually(() => words, (text) => text.includes('Ctrl-C') || ended, 30_000);
  assert.ok(!ended, `the demo ended: ${words}`);
  const list = /Processes: (.*?)\./.exec(words)[1];
  const processes = Object.fromEntries(list.split(', ').map((entry) => {
    const [name, id] = entry.split(' ');
    return [name, Number(id)];
  }));
  const metrics = /metrics: (\S+)/.exec(words)[1];
  const address = /^Open +(\S+)/m.exec(words)[1];
  let taken = 0;
  const another = async () => {
    const announced = () => [...words.matchAll(/^Opened\. Another browser: +(\S+)/gm)].map((found) => found[1]);
    await eventually(announced, (all) => all.length > taken, 5_000);
    // Earlier addresses were used.
    taken = announced().length;
    return announced().at(-1);
  };
  const end = async () => {
    child.kill('SIGINT');
    const code = await exited;
    await rm(blackbox, { recursive: true, force: true });
    return code;
  };
  return { address, host: new URL(address).host, words: () => words, processes, metrics, another, blackbox, end };
}

/**
 * The processes of a demo by name. They can be stopped, killed, and started again with their
 * settings.
 */
export class Processes {
  #ids;
  #settings;
  /** Processes started here by name, with their output and logs. */
  #started = {};

  constructor(demo) {
    this.#ids = { ...demo.processes };
    const arguments_ = (id) => readFileSync(`/proc/${id}/cmdline`, 'utf8').split('\0');
    this.#settings = Object.fromEntries(Object.entries(this.#ids).map(([name, id]) => {
      const words = arguments_(id);
      return [name, words[words.indexOf('--config') + 1]];
    }));
  }

  /** Returns the path of the settings file of a process. */
  settings(name) {
    return this.#settings[name];
  }

  signal(name, signal) {
    process.kill(this.#ids[name], signal);
  }

  /** Returns the ids of a process's threads with this name, at least one. */
  threads(name, thread) {
    const tasks = `/proc/${this.#ids[name]}/task`;
    const named = readdirSync(tasks).filter((id) => readFileSync(`${tasks}/${id}/comm`, 'utf8').trimEnd() === thread);
    assert.ok(named.length > 0, `${name} has no thread ${thread}`);
    return named;
  }

  /**
   * Kills a process as a crash would, and waits until its parent has noticed, for at most 10 s.
   * Only then has its last thread, which may wait for the disk, closed its sockets.
   */
  async kill(name) {
    const id = this.#ids[name];
    process.kill(id, 'SIGKILL');
    await eventually(() => existsSync(`/proc/${id}`), (remains) => !remains, 10_000);
  }

  /** Starts a process with its former settings. */
  start(name) {
    const child = spawn(BINARY, [name, '--config', this.#settings[name]], { stdio: ['ignore', 'pipe', 'pipe'] });
    const words = { printed: '', logged: '' };
    child.stdout.on('data', (chunk) => { words.printed += chunk; });
    child.stderr.on('data', (chunk) => { words.logged += chunk; });
    child.once('exit', (code) => {
      if (code) console.log(`${name} ended: ${words.logged.trimEnd().split('\n').at(-1)}`);
    });
    this.#ids[name] = child.pid;
    this.#started[name] = { child, words };
  }

  /**
   * Starts guard and machine again with longer limits, so that late pictures and frames on a busy
   * computer do not stop the vehicle.
   */
  async allowDelays() {
    await appendFile(this.#settings.guard, '[guard.latency]\nloop_age_full_ms = 1000\nloop_age_max_ms = 2000\n' +
      'picture_age_max_ms = 900\ncommand_timeout_ms = 900\nproposal_timeout_ms = 100\nmachine_timeout_ms = 100\nstep_gap_max_ms = 100\n');
    await appendFile(this.#settings.machine, 'control_timeout_ms = 100\n');
    for (const name of ['machine', 'guard']) {
      await this.kill(name);
      this.start(name);
    }
  }

  /** Returns the output and log of a process started here. */
  words(name) {
    return this.#started[name].words;
  }

  /** Ends the processes started here; the demo ends the others. */
  end() {
    for (const { child } of Object.values(this.#started)) child.kill('SIGKILL');
  }
}

/**
 * Stops these threads and returns what releases them. It uses hold.py, which must have started this
 * process.
 */
export async function hold(threads) {
  const holder = connect(process.env.HOLDER).setEncoding('utf8');
  let answer = '';
  holder.on('data', (words) => { answer += words; });
  const ended = new Promise((resolve) => { holder.once('close', resolve); });
  holder.write(`${threads.join(' ')}\n`);
  await eventually(() => answer, (words) => words.endsWith('\n'), 5_000, 5);
  assert.equal(answer, 'held\n', `threads ${threads}`);
  return async () => {
    holder.end();
    await ended;
  };
}

export function launchBrowser() {
  return chromium.launch({
    executablePath: CHROMIUM,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
      '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
}

/**
 * Arms the vehicle unless it is armed or drives, as a person does: with the throttle released, and
 * again after a refusal. Fails after 20 s.
 */
export async function arm(page) {
  const mode = () => page.locator('#mode').innerText();
  const end = performance.now() + 20_000;
  while (!['Armed', 'Driving', 'Speed limited'].includes(await mode())) {
    assert.ok(performance.now() < end, `not armed: ${await mode()}, ${await page.locator('#banner').innerText()}`);
    if (await mode() === 'Held') await page.keyboard.press('Enter');
    await sleep(300);
  }
}

/** Opens the console at a printed address, and waits until its page has loaded. */
export async function openConsole(page, address) {
  await page.goto(address);
  await page.locator('#picture').waitFor({ state: 'attached' });
}

/**
 * Returns a port that neither TCP nor UDP uses, nor the one after it (a switchboard needs two),
 * each only once. The port is outside the range from which the system assigns ports, so no socket
 * opened meanwhile takes it. Test files that run at the same time have similar process numbers, and
 * search elsewhere. free_port.rs does the same.
 */
export async function freePort() {
  const first = FIRST_PORT + 2 * ((process.pid * PROCESS_PAIRS + pairs) % Math.floor((firstGiven() - FIRST_PORT) / 2));
  pairs += 1;
  const bound = async (socket, bind) => {
    const free = new Promise((resolve) => {
      socket.once('listening', () => { socket.close(() => resolve(true)); });
      socket.once('error', () => resolve(false));
    });
    bind();
    return free;
  };
  for (const port of [first, first + 1]) {
    const tcp = createServer();
    const udp = createSocket('udp4');
    const free = await bound(tcp, () => tcp.listen(port, '127.0.0.1')) && await bound(udp, () => udp.bind(port, '127.0.0.1'));
    if (!free) return freePort();
  }
  return first;
}

/** Returns the first port that the system assigns by itself. */
function firstGiven() {
  const first = Number(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split(/\s/)[0]);
  return first > FIRST_PORT + 1 ? first : 65_535;
}

/**
 * Reads again every `pause` ms until `holds` accepts the value, and returns it. Fails after
 * `timeout` ms.
 */
export async function eventually(read, holds, timeout, pause = 50) {
  const end = performance.now() + timeout;
  let value;
  do {
    value = await read();
    if (holds(value)) return value;
    await sleep(pause);
  } while (performance.now() < end);
  assert.fail(`not within ${timeout} ms; the last value was ${value}`);
}

/**
 * Tries again while `attempt` returns a reason why it was inconclusive, and ends once it returns
 * `undefined`. Each reason is logged; it fails after `count` of them.
 */
export async function inTries(count, attempt) {
  const reasons = [];
  while (reasons.length < count) {
    const reason = await attempt();
    if (reason === undefined) return;
    reasons.push(reason);
    console.log(`not judged, ${reasons.length} of at most ${count - 1}: ${reason}`);
  }
  assert.fail(`not judged in ${count} tries: ${reasons.join('; ')}`);
}

/**
 * Runs in the page: defines `readStamp`, which returns the picture's capture time in ms modulo 2³²,
 * or null if no stamp can be read. The stamp has 42 cells of 8x8 pixels at the canvas's top left;
 * white is 1.
 */
export function defineStampReader() {
  const copy = new OffscreenCanvas(42 * 8, 8);
  const context = copy.getContext('2d', { willReadFrequently: true });
  globalThis.readStamp = () => {
    const canvas = document.querySelector('canvas#picture');
    context.drawImage(canvas, 0, 0, 42 * 8, 8, 0, 0, 42 * 8, 8);
    const { data, width } = context.getImageData(0, 0, 42 * 8, 8);
    const bit = (cell) => {
      let sum = 0;
      for (let y = 2; y < 6; y += 1) {
        for (let x = 2; x < 6; x += 1) sum += data[(y * width + cell * 8 + x) * 4 + 1];
      }
      return sum / 16 > 128 ? 1 : 0;
    };
    const bits = (from, count) => {
      let value = 0;
      for (let cell = from; cell < from + count; cell += 1) value = value * 2 + bit(cell);
      return value;
    };
    if (bit(0) !== 1 || bit(1) !== 0) return null;
    const value = bits(2, 32);
    let crc = 0;
    for (const shift of [24, 16, 8, 0]) {
      crc ^= (value >>> shift) & 0xff;
      for (let i = 0; i < 8; i += 1) crc = crc & 0x80 ? ((crc << 1) ^ 0x07) & 0xff : (crc << 1) & 0xff;
    }
    return crc === bits(34, 8) ? value : null;
  };
}

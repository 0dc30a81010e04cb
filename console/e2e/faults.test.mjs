// Failures between wheel and picture while a car is driven: links, processes, one direction of the
// network. The car stops within the bound, the page shows why, and nothing moves before somebody
// arms again.
//
// FAULTS=all sends every signal to every process (`make faults`); otherwise one of each kind.
// Started by hold.py, it stops each of their threads by ptrace. Needs target/release/tautline (or
// TAUTLINE) and Debian's chromium.
import assert from 'node:assert/strict';
import { appendFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Processes, arm, eventually, hold, inTries, launchBrowser, openConsole, startDemo } from './stand.mjs';

const ALL = process.env.FAULTS === 'all';
const LINKS = [0, 1, 2, 3];
/**
 * Speed in m/s at which a failure begins. The throttle is held, so the speed rises until the guard
 * acts.
 */
const SPEED = 4;
/**
 * Maximum age of a picture for driving, and the time of a guard step with the brake's response,
 * both in s.
 */
const [PICTURE, ANSWER] = [0.5, 0.1];
/** Time without a fresh command until the guard stops the machine, in s. */
const COMMAND = 0.3;
/**
 * Time without a word from another process until the guard or the car stops, in s, with the
 * timeouts as set below.
 */
const SILENCE = 0.2;
/**
 * Time until the car stops when the hanging thread only reports the vehicle's state and receives
 * the order to end, in s.
 */
const PROCESS = 1;

let demo;
let recording;
let processes;
let browser;
let page;
let carsMetrics;
let linksControl;

before(async () => {
  recording = await mkdtemp(join(tmpdir(), 'tautline-recording-'));
  demo = await startDemo(['--links', 'lan', '--pictures-per-second', '20', '--record', recording]);
  processes = new Processes(demo);
  const setting = async (name, key) =>
    new RegExp(`^${key} = "([^"]*)"`, 'm').exec(await readFile(processes.settings(name), 'utf8'))[1];
  carsMetrics = `http://${await setting('machine', 'metrics')}/metrics`;
  linksControl = await setting('emulate', 'control');
  // This does not test how fast a silent process is detected, since the machine is shared with a
  // browser.
  await appendFile(processes.settings('guard'), '[guard.latency]\nproposal_timeout_ms = 100\n' +
    'machine_timeout_ms = 100\nstep_gap_max_ms = 100\n');
  await appendFile(processes.settings('machine'), 'control_timeout_ms = 100\n');
  for (const name of ['machine', 'guard']) {
    await processes.kill(name);
    processes.start(name);
  }
  browser = await launchBrowser();
  page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  await openConsole(page, demo.address);
});

after(async () => {
  await browser?.close();
  processes?.end();
  await demo?.end();
  await rm(recording, { recursive: true, force: true });
});

test('the video direction goes black: the car stops, the page dims', async () => {
  await drive();
  await links({ cut: true, direction: 'up' });
  const stopped = stands(PICTURE);
  const told = await pictureIsLate();
  await stopped;
  assert.match(cause(), /^(PictureAge|CommandTimeout)$/, 'commands go on, and so do acknowledgements');
  await bannerSays(/Telemetry is stale|session is lost/);
  await links({ cut: false });
  await bannerSays(/Held/, /picture seen here was too old|No fresh command|session in which/);
  await stays();
  console.log(`the page reported a late picture ${told} ms after its link went black`);
});

test('220 ms each way: the car stops and refuses to arm', async () => {
  await drive();
  await links({ delay_ms: 220 });
  await stands(PICTURE);
  assert.match(cause(), /^(PictureAge|CommandTimeout)$/);
  await pictureIsLate();
  await bannerSays(/Held|Telemetry is stale/);
  await page.keyboard.up('ArrowUp');
  await page.keyboard.press('Enter');
  await bannerSays(/Not armed|Held|Telemetry is stale/, /picture|links are too slow|did not answer|No telemetry for/);
  await page.keyboard.down('ArrowUp');
  await stays();
  await links({ delay_ms: 0 });
  await bannerSays(/Held|Not armed/);
  await stays();
});

/**
 * Signals to processes. For `alive` s the car may drive on, then it stops for one of `causes` in
 * the guard's log, and the page's banner `says` so. With `isLate` the page must report a late
 * picture. Those with `isLong` run only with FAULTS=all.
 */
const FAULTS = [
  { name: 'vehicle', signal: 'SIGSTOP', alive: SILENCE, causes: /^ProposalTimeout$/, says: /Telemetry is stale|session is lost/, isLate: true },
  { name: 'operator', signal: 'SIGSTOP', alive: PICTURE, causes: /^(CommandTimeout|PictureAge)$/, says: /Telemetry is stale|No connection/, isLate: true },
  { name: 'guard', signal: 'SIGKILL', alive: SILENCE, says: /Guard silent/ },
  { name: 'emulate', signal: 'SIGKILL', alive: PICTURE, causes: /^(CommandTimeout|PictureAge)$/, says: /Telemetry is stale|session is lost/, isLate: true },
  { name: 'vehicle', signal: 'SIGKILL', alive: SILENCE, causes: /^ProposalTimeout$/, says: /Telemetry is stale|session is lost/, isLate: true, isLong: true },
  { name: 'operator', signal: 'SIGKILL', alive: PICTURE, causes: /^(CommandTimeout|PictureAge)$/, says: /No connection/, isLong: true },
  { name: 'guard', signal: 'SIGSTOP', alive: SILENCE, says: /Guard silent/, isLong: true },
  { name: 'emulate', signal: 'SIGSTOP', alive: PICTURE, causes: /^(CommandTimeout|PictureAge)$/, says: /Telemetry is stale|session is lost/, isLate: true, isLong: true },
];

for (const { name, signal, isLong, ...found } of FAULTS) {
  const skip = isLong && !ALL && 'make faults runs it';
  test(`the process ${name} gets ${signal}: the car stops until armed`, { skip }, async () => {
    await stops(found, () => signal === 'SIGKILL' ? processes.kill(name) : processes.signal(name, signal));
    if (signal === 'SIGSTOP') processes.signal(name, 'SIGCONT');
    else processes.start(name);
    if (name === 'operator' && signal === 'SIGKILL') await openAnew();
    await bannerSays(/Held/);
    await stays();
  });
}

/**
 * Pauses in ms, as by a debugger, a suspended virtual machine or a stalled disk: shorter than every
 * limit or about one, longer, and longer than a session's silence.
 */
const PAUSES = [100, 1_000, 5_000];
/** Processes, and how long each may count as alive in s. */
const PAUSED = { vehicle: SILENCE, operator: PICTURE, guard: SILENCE, machine: SILENCE, emulate: PICTURE };

for (const [name, alive] of Object.entries(PAUSED)) {
  for (const ms of PAUSES) {
    const what = ms > 1_000 * alive ? 'the car stops until armed' : 'the car drives on or is held';
    test(`the process ${name} is paused for ${ms} ms: ${what}`, { skip: !ALL && 'make faults runs it' }, async () => {
      await drive();
      processes.signal(name, 'SIGSTOP');
      // A paused car tells nothing of itself.
      const isSeen = name !== 'machine' && ms > 1_000 * alive;
      const [, distance] = await Promise.allSettled([
        sleep(ms).then(() => processes.signal(name, 'SIGCONT')), isSeen ? stands(alive) : undefined,
      ]);
      if (distance.status === 'rejected') throw distance.reason;
      if (ms <= 1_000 * alive && await disturbance(1_500).then(() => true, () => false)) return;
      if (!isSeen) await eventually(async () => (await car()).parkingBrake, (parked) => parked === 1, 20_000);
      await bannerSays(/Held/);
      await stays();
    });
  }
}

/**
 * Held threads, with the fields of FAULTS: all of that name, or `count` of them. `tautline` is the
 * main thread. An operator thread that is stopped while it holds a lock also blocks those that wait
 * for it; then the page receives nothing at all.
 */
const HANGS = [
  { name: 'vehicle', thread: 'camera', alive: PICTURE, causes: /^(CameraStopped|PictureAge)$/, says: /Held/, isLate: true },
  { name: 'vehicle', thread: 'encoder', count: 1, alive: PICTURE, causes: /^(EncoderStopped|PictureAge)$/, says: /Held/, isLate: true },
  { name: 'vehicle', thread: 'proposals', alive: SILENCE, causes: /^ProposalTimeout$/, says: /Guard silent/ },
  { name: 'vehicle', thread: 'event-loop', alive: PICTURE, causes: /^(CommandTimeout|PictureAge)$/, says: /Telemetry is stale|session is lost/, isLate: true },
  { name: 'vehicle', thread: 'tautline', alive: PROCESS, causes: /^ProposalTimeout$/, says: /Telemetry is stale/ },
  { name: 'vehicle', thread: 'tokio-rt-worker', alive: PROCESS, causes: /^ProposalTimeout$/, says: /Telemetry is stale/ },
  { name: 'operator', thread: 'event-loop', alive: PICTURE, causes: /^(CommandTimeout|PictureAge)$/, says: /Telemetry is stale|session is lost|No connection/, isLate: true },
  { name: 'operator', thread: 'tautline', alive: COMMAND, causes: /^(CommandTimeout|PictureAge)$/, says: /Held|Telemetry is stale|No connection/ },
  { name: 'operator', thread: 'tokio-rt-worker', alive: PICTURE, causes: /^(CommandTimeout|PictureAge)$/, says: /Telemetry is stale|No connection/, isLate: true },
  { name: 'guard', thread: 'guard', alive: SILENCE, says: /Guard silent/ },
  { name: 'emulate', thread: 'tokio-rt-worker', alive: PICTURE, causes: /^(CommandTimeout|PictureAge)$/, says: /Telemetry is stale|session is lost/, isLate: true },
];
/**
 * Threads whose failure must not stop the vehicle, by process: the other threads of processes that
 * move it.
 */
const BESIDE = { guard: ['tautline', 'tokio-rt-worker', 'blackbox', 'latch', 'teller'], operator: ['recorder'], emulate: ['tautline'] };
const unheld = !process.env.HOLDER && 'make faults runs it, where threads can be held by ptrace';

for (const { name, thread, count, ...found } of HANGS) {
  test(`the thread ${thread} of ${name} is held: the car stops until armed`, { skip: unheld }, async () => {
    const threads = processes.threads(name, thread).slice(0, count);
    let release = async () => {};
    try {
      await stops(found, async () => { release = await hold(threads); });
    } finally {
      await release();
    }
    await bannerSays(/Held/);
    await stays();
  });
}

for (const [name, threads] of Object.entries(BESIDE)) {
  test(`a held thread of ${name} that moves nothing stops nothing`, { skip: unheld }, async () => {
    for (const id of threads.flatMap((thread) => processes.threads(name, thread))) {
      await inTries(5, async () => {
        await drive();
        const release = await hold([id]);
        try {
          return await disturbance(1_000);
        } finally {
          await release();
        }
      });
    }
    await brake();
  });
}

test('a reload while driving stops the car until it is armed again', async () => {
  await drive();
  // The old page drives until the new one replaces it.
  const left = page.waitForEvent('framenavigated');
  await Promise.all([left.then(() => stands(COMMAND)), page.reload()]);
  assert.match(cause(), /^(ConsoleGone|CommandTimeout|PictureAge|PageHidden|FocusLost|ConsoleChanged)$/);
  await bannerSays(/Held/);
  await stays();
});

test('stopping and killing the switchboard stops no vehicle', async () => {
  await inTries(3, async () => {
    await drive();
    for (const ms of ALL ? PAUSES : []) {
      processes.signal('switchboard', 'SIGSTOP');
      const disturbed = await disturbance(ms);
      processes.signal('switchboard', 'SIGCONT');
      if (disturbed !== undefined) return disturbed;
    }
    processes.signal('switchboard', 'SIGSTOP');
    const hangs = await disturbance(1_000);
    processes.signal('switchboard', 'SIGCONT');
    await processes.kill('switchboard');
    const dies = await disturbance(1_000);
    processes.start('switchboard');
    return hangs ?? dies ?? disturbance(1_000);
  });
  await brake();
});

/**
 * Drives and triggers the failure. The car must stop after at most `alive` s plus the ramp, for one
 * of these causes, and guard and page must report it.
 */
async function stops({ alive, causes, says, isLate }, fault) {
  await drive();
  await fault();
  const stopped = stands(alive);
  if (isLate) await pictureIsLate();
  await stopped;
  if (causes) assert.match(cause(), causes);
  await bannerSays(says);
  await stays();
}

/**
 * Arms and drives until the car is faster than SPEED. On a busy machine the guard may stop it; then
 * it tries again, up to 5 times.
 */
async function drive() {
  for (let turn = 1; ; turn += 1) {
    await page.keyboard.up('ArrowUp');
    await arm(page);
    await page.keyboard.down('ArrowUp');
    const end = performance.now() + 10_000;
    while (performance.now() < end) {
      const { speed, hazard } = await car();
      if (speed > SPEED) return;
      if (hazard === 1) break;
      await sleep(10);
    }
    const told = `${await page.locator('#mode').innerText()}, ${await page.locator('#banner').innerText()}`;
    assert.ok(turn < 6, `no ${SPEED} m/s: ${told}`);
    console.log(`armed again: no ${SPEED} m/s: ${told}`);
  }
}

/**
 * Waits until the car stands on its parking brake. Fails after 20 s, or if it went farther than
 * `alive` s, the guard's step and the ramp allow at its highest speed.
 */
async function stands(alive) {
  const begun = await car();
  let fastest = begun.speed;
  let now = begun;
  const end = performance.now() + 20_000;
  while (now.speed !== 0 || now.parkingBrake !== 1) {
    assert.ok(performance.now() < end, `it does not stand: ${JSON.stringify(now)}`);
    fastest = Math.max(fastest, now.speed);
    await sleep(5);
    now = await car();
  }
  const distance = now.odometer - begun.odometer;
  const bound = fastest * (alive + ANSWER) + ramp(fastest);
  console.log(`${distance.toFixed(1)} m of ${bound.toFixed(1)} from ${fastest.toFixed(1)} m/s`);
  assert.ok(distance < bound, `${distance} m from ${fastest} m/s, of ${bound}`);
  assert.equal(now.hazard, 1);
}

/**
 * Returns the metres of a manoeuvre from this speed in m/s: from 1.5 m/s² with 5 m/s³ to 4 m/s²,
 * and half a metre of control lag. A car that stands before it reaches 4 m/s² has the metres of one
 * second at this speed.
 */
function ramp(speed) {
  const ramped = 1.5 * 0.5 + 5 * 0.5 ** 2 / 2;
  if (speed < ramped) return speed;
  return speed * 0.5 - 1.5 * 0.5 ** 2 / 2 - 5 * 0.5 ** 3 / 6 + (speed - ramped) ** 2 / (2 * 4) + 0.5;
}

/** Presses the throttle again for half a second: the car must not move. */
async function stays() {
  const begun = (await car()).odometer;
  await page.keyboard.up('ArrowUp');
  await page.keyboard.down('ArrowUp');
  await sleep(500);
  const now = await car();
  assert.deepEqual([now.speed, now.odometer], [0, begun], 'nobody armed it');
}

/** Releases the throttle, and brakes until the car stands. Fails after 10 s. */
async function brake() {
  await page.keyboard.up('ArrowUp');
  await page.keyboard.down('Space');
  await eventually(async () => (await car()).speed, (speed) => speed === 0, 10_000);
  await page.keyboard.up('Space');
}

/**
 * Requires that the car drives on for this long, at over half of SPEED. Returns a reason if a busy
 * machine with late pictures stops it, otherwise `undefined`.
 */
async function disturbance(ms) {
  const begun = (await car()).odometer;
  const end = performance.now() + ms;
  while (performance.now() < end) {
    const { hazard, speed } = await car();
    if (hazard === 1 && cause() === 'PictureAge') return 'the pictures were too old';
    assert.equal(hazard, 0, `it stops, by ${cause()}`);
    assert.ok(speed > SPEED / 2, `${speed} m/s`);
    await sleep(100);
  }
  assert.ok((await car()).odometer > begun + ms / 1_000 * SPEED / 2);
  return undefined;
}

/**
 * Waits until the page shows the picture's age, for at most 2 s, and requires that it is dimmed.
 * Returns the time in ms.
 */
async function pictureIsLate() {
  const begun = performance.now();
  await page.locator('#picture-age', { hasText: /^Picture \d+\.\d s old$/ }).waitFor({ timeout: 2_000 });
  const told = Math.round(performance.now() - begun);
  const opacity = await page.locator('#picture').evaluate((picture) => Number(getComputedStyle(picture).opacity));
  assert.ok(opacity < 0.5, `opacity ${opacity}`);
  return told;
}

/** Waits until the banner's title and detail match. Fails after 15 s. */
async function bannerSays(title, detail = /./) {
  const read = async () => ({
    title: await page.locator('#banner-title').textContent(), detail: await page.locator('#banner-detail').textContent(),
  });
  await eventually(async () => JSON.stringify(await read()), (json) => {
    const words = JSON.parse(json);
    return title.test(words.title) && detail.test(words.detail);
  }, 15_000);
}

/**
 * Opens the address that a restarted operator process prints, since it no longer admits this
 * browser.
 */
async function openAnew() {
  await bannerSays(/no longer admitted|No connection/);
  await page.keyboard.up('ArrowUp');
  const printed = () => /^Open +(\S+)/m.exec(processes.words('operator').printed)?.[1];
  await openConsole(page, await eventually(printed, (address) => address !== undefined, 10_000));
}

/** Returns the cause of the newest stop from the guard's log, or `undefined` before the first. */
function cause() {
  const stops = [...processes.words('guard').logged.matchAll(/the guard stops the machine.*?cause=(\w+)/g)];
  return stops.at(-1)?.[1];
}

/**
 * Returns the car's own state, which no process in between can alter: speed in m/s, odometer in m,
 * and 1 for a parking brake or hazard lights that are on.
 */
async function car() {
  const text = await (await fetch(carsMetrics)).text();
  const number = (name) => Number(new RegExp(`^tautline_machine_${name} (\\S+)$`, 'm').exec(text)[1]);
  return {
    speed: number('speed_metres_per_second'), odometer: number('odometer_metres'),
    parkingBrake: number('parking_brake'), hazard: number('hazard'),
  };
}

/**
 * Sends this request to the emulator for each link, and waits for its answers. Fails after 2 s, or
 * at an error.
 */
async function links(request) {
  const [host, port] = linksControl.split(':');
  const socket = connect(Number(port), host);
  socket.write(LINKS.map((link) => `${JSON.stringify({ link, ...request })}\n`).join(''));
  let answers = '';
  socket.on('data', (chunk) => { answers += chunk; });
  await eventually(() => answers.split('\n').length - 1, (count) => count === LINKS.length, 2_000, 5);
  socket.destroy();
  assert.ok(!answers.includes('error'), answers);
}

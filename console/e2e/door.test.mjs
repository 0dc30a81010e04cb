// Access to the console and who drives: pages of other sites, the token, other consoles, a slow
// browser, a closed tab.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Builder } from 'flatbuffers';
import { arm, eventually, launchBrowser, openConsole, startDemo } from './stand.mjs';

const UPGRADE = {
  Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==',
};

let folder;
let demo;
let browser;
/** The first console's page, in a browser context with its own cookies. */
let first;

// Small pictures: two pages at a time decode and draw them without a GPU.
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tautline-door-'));
  const clip = join(folder, 'clip.mp4');
  const made = spawnSync('ffmpeg', ['-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=size=640x360:rate=20:duration=4',
    '-pix_fmt', 'yuv420p', clip]);
  assert.equal(made.status, 0, `ffmpeg: ${made.stderr}`);
  demo = await startDemo(['--links', 'direct', '--clip', clip]);
  browser = await launchBrowser();
});

after(async () => {
  await browser?.close();
  await demo?.end();
  await rm(folder, { recursive: true });
});

test('another name, another page or no cookie gets nothing', async () => {
  const evil = `evil.example:${demo.host.split(':')[1]}`;
  const origin = `http://${demo.host}`;
  for (const path of ['/', '/ws?console=1', '/metrics', '/status']) {
    assert.equal((await ask(path, { Host: evil, Origin: `http://${evil}` })).status, 421, path);
  }
  const socket = (fields) => ask('/ws?console=1', { ...UPGRADE, ...fields });
  assert.equal((await socket({ Host: evil, Origin: `http://${evil}` })).status, 421);
  assert.equal((await socket({ Origin: `http://${evil}` })).status, 403);
  assert.equal((await socket({})).status, 403, 'a browser tells its origin');
  assert.equal((await socket({ Origin: origin })).status, 401);
  assert.equal((await socket({ Origin: origin, Cookie: `tautline-${demo.host.split(':')[1]}=${'0'.repeat(32)}` })).status, 401);
  assert.equal((await ask('/session', {})).status, 401);
  const token = demo.address.split('#')[1];
  assert.equal((await post('/enter', token, { Origin: `http://${evil}` })).status, 403, 'the token is not spent by that');
  assert.equal((await post('/enter', `${token.slice(1)}0`, { Origin: origin })).status, 403);
});

test('a token admits one browser once, and reloads keep it', async () => {
  first = await newPage();
  const answer = await first.goto(`http://${demo.host}/`);
  assert.equal(answer.status(), 401);
  assert.match(await first.locator('#words').innerText(), /latest address/);
  const refused = [];
  first.on('console', (message) => {
    if (/Content Security Policy|Refused/.test(message.text())) refused.push(message.text());
  });
  await openConsole(first, demo.address);
  await drives(first);
  assert.equal(first.url(), `http://${demo.host}/`, 'the token is not left in the address');
  const [cookie] = await first.context().cookies();
  assert.deepEqual([cookie.httpOnly, cookie.sameSite], [true, 'Strict']);
  await first.reload();
  await drives(first);
  await openConsole(first, demo.address);
  await drives(first);

  const second = await newPage();
  await second.goto(demo.address);
  await eventually(() => second.locator('#words').innerText(), (words) => /was used before/.test(words), 5_000);
  await second.context().close();
  assert.deepEqual(refused, [], 'the page obeys its own policy');
});

test('no other page can frame the console', async (context) => {
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'text/html').end(`<!doctype html><iframe src="http://${demo.host}/"></iframe>`);
  }).listen(0, '127.0.0.1');
  context.after(() => server.close());
  await new Promise((resolve) => { server.once('listening', resolve); });
  const page = await first.context().newPage();
  const refused = [];
  page.on('console', (message) => refused.push(message.text()));
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await eventually(() => refused.join('\n'), (words) => words.includes('frame-ancestors'), 5_000);
  assert.equal(await page.frameLocator('iframe').locator('#picture').count(), 0);
  await page.close();
});

test('a moving vehicle changes hands by consent, a parked one at once', async () => {
  const second = await newPage();
  await second.goto(await demo.another());
  await second.locator('#picture').waitFor({ state: 'attached' });
  await titled(second, 'Another console drives');
  assert.match(await second.locator('#banner-detail').innerText(), /The console at 127\.0\.0\.1 has been driving since/);
  assert.match(await second.locator('#who').innerText(), /^\S+ \([0-9a-f]{8}\) drives from 127\.0\.0\.1/);
  const watched = /^you drive as \S+ \([0-9a-f]{8}\); \d more: 127\.0\.0\.1/;
  await eventually(() => first.locator('#who').innerText(), (who) => watched.test(who), 5_000);

  await drive(first, 2);
  await second.locator('#banner-action').click();
  await titled(second, 'Asked to drive');
  await titled(first, 'Another console asks to drive');
  await first.locator('#banner-action').click();
  await titled(second, 'The other console refused');
  assert.ok(await speed() > 0.5, 'it was asked while it moved');
  await first.keyboard.up('ArrowUp');
  // If the guard stops the vehicle meanwhile, because the machine is too busy to draw, it is handed
  // over at standstill.
  let [giver, taker] = [first, second];
  let attempts = 1;
  while (!await handOver(giver, taker)) {
    assert.ok(attempts < 4, 'it was stopped each time');
    [giver, taker, attempts] = [taker, giver, attempts + 1];
  }
  await taker.keyboard.down('Space');
  await eventually(speed, (metres) => Math.abs(metres) < 0.02, 15_000);
  await taker.keyboard.up('Space');
  if (taker === second) {
    await first.locator('#banner-action').click();
    await drives(first);
    await titled(second, 'Another console drives now');
    assert.match(await second.locator('#banner-detail').innerText(), /stood still/);
  }
  await second.context().close();
});

/**
 * Drives until the vehicle is faster than this, in m/s, and keeps the throttle pressed. If its
 * guard stops it, it is armed again. Fails after 40 s.
 */
async function drive(page, metresPerSecond) {
  const end = performance.now() + 40_000;
  do {
    assert.ok(performance.now() < end, `it does not drive: ${await page.locator('#banner').innerText()}`);
    await page.keyboard.up('ArrowUp');
    await arm(page);
    await page.keyboard.down('ArrowUp');
    for (let look = 0; look < 20 && await speed() <= metresPerSecond; look += 1) await sleep(250);
  } while (await speed() <= metresPerSecond);
}

/**
 * Drives from one page and hands over to another. Returns whether it was handed over while driving
 * and the guard kept driving for half a second.
 */
async function handOver(from, to) {
  await drive(from, 1);
  await to.locator('#banner-action').click();
  await from.locator('#banner-other').click();
  const title = () => to.locator('#banner-title').innerText();
  await eventually(title, (words) => words !== 'Asked to drive', 5_000);
  const offered = await title() === 'Take over';
  if (offered) {
    await titled(from, 'Handing over');
    await to.keyboard.down('ArrowUp');
    await seesSteadily(to);
    await takeOver(from, to);
  }
  await titled(from, 'Another console drives now');
  const mode = await to.locator('#mode').innerText();
  await sleep(500);
  const goesOn = await to.locator('#mode').innerText();
  for (const page of [from, to]) await page.keyboard.up('ArrowUp');
  console.log(`handed over: ${offered ? 'while driving' : 'at standstill'}, then ${mode}, then ${goesOn}`);
  return offered && [mode, goesOn].every((words) => ['Driving', 'Speed limited'].includes(words));
}

/**
 * Presses Enter in `to` until `from` no longer hands over, again after each refusal that `to`
 * shows: the guard refuses while the driver's commands come late. Fails after 5 s.
 */
async function takeOver(from, to) {
  await to.keyboard.press('Enter');
  const handsOver = async () => {
    const refused = await to.locator('#banner').innerText();
    if (refused.startsWith('Not taken over')) {
      console.log(refused);
      await to.keyboard.press('Enter');
    }
    return await from.locator('#banner-title').innerText() === 'Handing over';
  };
  await eventually(handsOver, (still) => !still, 5_000);
}

/**
 * Waits until the page's pictures have been at most 300 ms late for one second, after its decoders
 * have started. It waits for at most 6 s and does not fail.
 */
async function seesSteadily(page) {
  const delay = async () => Number.parseFloat(await page.locator('#hud-delay').innerText());
  const end = performance.now() + 6_000;
  for (let inTime = 0; inTime < 5 && performance.now() < end; await sleep(200)) {
    inTime = await delay() <= 300 ? inTime + 1 : 0;
  }
}

test('a closed tab costs less than an open one', async () => {
  await drives(first);
  await sleep(2_000);
  const open = await receivedBytes(4_000);
  await first.close();
  await sleep(2_000);
  const closed = await receivedBytes(4_000);
  console.log(`received a second: ${(open / 4_000).toFixed(0)} kB with the console open, ${(closed / 4_000).toFixed(0)} kB with its tab closed`);
  // On a busy machine an open console draws and requests fewer pictures, so it uses little itself.
  assert.ok(closed < open, `${closed} bytes with the tab closed, ${open} with it open`);
});

test('a browser that stops reading still commands', async (context) => {
  const token = (await demo.another()).split('#')[1];
  const origin = `http://${demo.host}`;
  const entered = await post('/enter', token, { Origin: origin });
  assert.equal(entered.status, 204);
  const [hostname, port] = demo.host.split(':');
  const socket = connect(Number(port), hostname);
  context.after(() => socket.destroy());
  const head = { ...UPGRADE, Host: demo.host, Origin: origin, Cookie: entered.cookie };
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`).join('');
  socket.write(`GET /ws?console=5105 HTTP/1.1\r\n${lines}\r\n`);
  const answer = await new Promise((resolve) => { socket.once('data', resolve); });
  assert.match(answer.toString('latin1'), /^HTTP\/1\.1 101 /);
  socket.pause();
  const commanding = setInterval(() => socket.write(frame(command(0.4))), 20);
  context.after(() => clearInterval(commanding));
  const dropped = async () => metric(await (await fetch(`${origin}/metrics`)).text(),
    'tautline_operator_drops_total{name="console: slice dropped, browser too slow"}');
  await eventually(dropped, (count) => count > 0, 30_000, 200);
  const before = await commands();
  await sleep(1_000);
  const taken = await commands() - before;
  assert.ok(taken >= 20, `${taken} commands were taken in a second of which nothing was read`);
});

test('beyond this machine only HTTPS works, with a printed fingerprint', async (context) => {
  const far = await startDemo(['--links', 'direct', '--pictures-per-second', '10', '--console-name', '127.0.0.1'], '0.0.0.0');
  context.after(far.end);
  assert.match(far.address, /^https:\/\/127\.0\.0\.1:\d+\/#[0-9a-f]{32}$/);
  const [host, port] = far.host.split(':');
  const socket = connectTls({ host, port: Number(port), rejectUnauthorized: false });
  await new Promise((resolve) => { socket.once('secureConnect', resolve); });
  assert.equal(socket.getProtocol(), 'TLSv1.3');
  assert.ok(far.words().includes(`Certificate, SHA-256: ${socket.getPeerCertificate().fingerprint256}\n`), far.words());
  socket.destroy();
  const plain = await fetch(`http://${far.host}/`);
  assert.equal(plain.status, 400);
  assert.match(await plain.text(), /^this console requires HTTPS: open https:/);
  const page = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage();
  await openConsole(page, far.address);
  await drives(page);
  const [cookie] = await page.context().cookies();
  assert.ok(cookie.secure);
  for (const path of ['/metrics', '/status', '/probe/packet-size']) {
    assert.equal((await page.request.get(`https://${far.host}${path}`)).status(), 404, path);
  }
  await page.context().close();
});

async function newPage() {
  const context = await browser.newContext({ viewport: { width: 1000, height: 700 } });
  return context.newPage();
}

/** Waits until the page is connected and shows pictures. */
async function drives(page) {
  await eventually(() => page.locator('#connection').innerText(), (text) => text === 'connected', 10_000);
  await eventually(async () => Number.parseFloat(await page.locator('#picture-rate').innerText()), (rate) => rate > 0, 15_000);
}

function titled(page, title) {
  return eventually(() => page.locator('#banner-title').innerText(), (text) => text === title, 5_000);
}

/**
 * Sends a request with headers that a browser would not let a page set. Returns the status and the
 * first cookie of the answer, "" if it sets none.
 */
function ask(path, headers, method = 'GET', body = '') {
  const [hostname, port] = demo.host.split(':');
  return new Promise((resolve, reject) => {
    const asked = request({ hostname, port, path, method, headers: { Host: demo.host, ...headers } }, (response) => {
      response.resume();
      resolve({ status: response.statusCode, cookie: (response.headers['set-cookie'] ?? [''])[0].split(';')[0] });
    });
    asked.on('upgrade', (response, socket) => {
      socket.destroy();
      resolve({ status: response.statusCode, cookie: '' });
    });
    asked.on('error', reject);
    asked.end(body);
  });
}

function post(path, body, headers) {
  return ask(path, headers, 'POST', body);
}

/** Returns the vehicle's own speed in m/s, negative in reverse. */
async function speed() {
  return metric(await (await fetch(demo.metrics)).text(), 'tautline_vehicle_speed_metres_per_second');
}

/** Returns the number of commands that the vehicle has received. */
async function commands() {
  const text = await (await fetch(demo.metrics)).text();
  return metric(text, 'tautline_vehicle_channel_units_total{channel="command",what="delivered"}');
}

/** Returns the number of bytes that the operator receives over all links in this time. */
async function receivedBytes(milliseconds) {
  const read = async () => {
    const text = await (await fetch(`http://${demo.host}/metrics`)).text();
    const lines = text.split('\n').filter((line) => /^tautline_operator_link_bytes_total\{.*what="received"/.test(line));
    assert.ok(lines.length > 0);
    return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
  };
  const begun = await read();
  await sleep(milliseconds);
  return await read() - begun;
}

/** Returns a number from the text of metrics, or 0 if it has none of that name. */
function metric(text, name) {
  const line = text.split('\n').find((line) => line.startsWith(`${name} `));
  return line === undefined ? 0 : Number(line.split(' ').at(-1));
}

/** Encodes a command as the console does: straight ahead with this throttle. */
function command(throttle) {
  const builder = new Builder(64);
  builder.startObject(2);
  builder.prep(8, 32);
  builder.pad(2);
  builder.writeInt8(0);
  builder.writeInt8(0);
  builder.writeFloat32(0);
  builder.writeFloat32(throttle);
  builder.writeFloat32(0);
  builder.writeInt64(BigInt(Date.now()) * 1_000_000n);
  builder.writeInt64(0n);
  builder.addFieldStruct(0, builder.offset(), 0);
  builder.finish(builder.endObject(), 'TLC2');
  return Buffer.concat([Buffer.of(1), builder.asUint8Array()]);
}

/** Encodes a browser's masked binary frame with a payload of fewer than 126 bytes. */
function frame(payload) {
  const mask = randomBytes(4);
  return Buffer.concat([Buffer.of(0x82, 0x80 | payload.length), mask, payload.map((byte, at) => byte ^ mask[at % 4])]);
}

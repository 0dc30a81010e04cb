// The console behind a proxy that terminates TLS, at the root of its name and below a path.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { createServer } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { BINARY, eventually, freePort, launchBrowser } from './stand.mjs';

let folder;
let browser;
/** Key and certificate of the proxies. */
let tls;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tautline-proxy-'));
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const made = spawnSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes',
    '-keyout', key, '-out', cert, '-subj', '/CN=drive.example', '-days', '1']);
  assert.equal(made.status, 0, `openssl: ${made.stderr}`);
  tls = { key: readFileSync(key), cert: readFileSync(cert) };
  browser = await launchBrowser();
});

after(async () => {
  await browser?.close();
  await rm(folder, { recursive: true });
});

for (const path of ['/', '/car1/']) {
  test(`a proxy at ${path} opens, admits and connects the page`, async () => {
    const [console_, front] = [await freePort(), await freePort()];
    const proxy = await serve(front, console_, path);
    const operator = start(console_, `localhost:${front}${path === '/' ? '' : path}`, path);
    const page = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage();
    try {
      const address = await eventually(operator.address, (found) => found !== undefined, 20_000);
      assert.match(address, new RegExp(`^https://localhost:${front}${path}#`));
      const frames = [];
      page.on('websocket', (socket) => socket.on('framereceived', () => frames.push(socket.url())));
      await page.goto(address);
      await eventually(() => frames.length, (count) => count > 0, 20_000);
      assert.equal(new URL(frames[0]).pathname, `${path}ws`);
      assert.equal(page.url(), `https://localhost:${front}${path}`);
      const [cookie] = await page.context().cookies();
      assert.deepEqual([cookie.secure, cookie.httpOnly, cookie.sameSite], [true, true, 'Strict']);
      assert.equal(cookie.path, path === '/' ? '/' : '/car1');
      // A request without the proxy, or for a path that it must not forward, finds nothing.
      const status = (host, what) => fetchStatus(console_, host, what);
      assert.equal(await status(`127.0.0.1:${console_}`, '/'), 421);
      for (const what of ['/metrics', '/status']) assert.equal(await status(`localhost:${front}`, what), 404);
    } finally {
      await page.context().close();
      await operator.end();
      proxy.closeAllConnections();
      await new Promise((resolve) => { proxy.close(resolve); });
    }
  });
}

/**
 * Starts a server that terminates TLS on port `front` and forwards what is below `path` to the
 * console on port `to`, as nginx and Caddy do. Other paths get status 404.
 */
function serve(front, to, path) {
  const below = (url) => (url.startsWith(path) ? `/${url.slice(path.length)}` : undefined);
  const server = createServer(tls, (asked, answer) => {
    const url = below(asked.url);
    if (url === undefined) return answer.writeHead(404).end();
    const headers = { ...asked.headers, 'x-forwarded-for': asked.socket.remoteAddress };
    const onward = request({ host: '127.0.0.1', port: to, method: asked.method, path: url, headers }, (found) => {
      answer.writeHead(found.statusCode, found.headers);
      found.pipe(answer);
    });
    onward.on('error', () => answer.destroy());
    asked.pipe(onward);
    return undefined;
  });
  server.on('upgrade', (asked, socket, head) => {
    const onward = connect(to, '127.0.0.1', () => {
      const lines = Object.entries(asked.headers).map(([name, value]) => `${name}: ${value}\r\n`);
      onward.write(`GET ${below(asked.url)} HTTP/1.1\r\n${lines.join('')}\r\n`);
      onward.write(head);
      onward.pipe(socket).pipe(onward);
    });
    for (const end of [onward, socket]) end.on('error', () => { onward.destroy(); socket.destroy(); });
  });
  return new Promise((resolve) => { server.listen(front, '127.0.0.1', () => resolve(server)); });
}

/**
 * Starts an operator for its console only. Returns `address()`, the printed address or `undefined`,
 * and `end()`.
 */
function start(port, name, path) {
  const key = join(folder, `operator${path.length}.key`);
  assert.equal(spawnSync(BINARY, ['keys', 'new', key]).status, 0);
  const known = spawnSync(BINARY, ['keys', 'show', key]).stdout.toString().trim();
  const child = spawn(BINARY, ['operator', '--key', key, '--switchboard', '127.0.0.1:1', '--switchboard-key', known,
    '--link', '127.0.0.1:0', '--console', `127.0.0.1:${port}`, '--console-behind', 'https', '--console-name', name],
  { stdio: ['ignore', 'pipe', 'ignore'] });
  let words = '';
  child.stdout.on('data', (chunk) => { words += chunk; });
  const exited = new Promise((resolve) => { child.once('exit', resolve); });
  const address = () => /^Open +(\S+)/m.exec(words)?.[1];
  const end = async () => {
    child.kill('SIGTERM');
    await exited;
  };
  return { address, end };
}

function fetchStatus(port, host, path) {
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port, path, headers: { Host: host } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    asked.on('error', reject);
    asked.end();
  });
}

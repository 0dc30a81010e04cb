// Simulates operator and vehicle for a page: it serves console/dist, reads the commands, and sends
// telemetry of the test. No picture, no session.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { Builder, ByteBuffer } from 'flatbuffers';
import { descriptionBytes, valuesBytes } from './described.mjs';
import { statusFrame } from './status.mjs';

const DIST = new URL('../dist/', import.meta.url).pathname;
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };
const WEBSOCKET = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'; // RFC 6455, 1.3
const TELL_MS = 50;

/**
 * Serves until `close`. `commands` has every command so far, with its time `at`, `asked` every
 * other message except those of clock and video, and `consoles` the number of each connection in
 * hexadecimal. `guard` is the guard's state in the telemetry; null if it is silent. While `silent`
 * is true, no telemetry is sent. `stand`, `tellTopics`, `tellFleet`, `describe` and `tellValues`
 * send to the newest connection.
 */
export async function startStandIn() {
  const standIn = { commands: [], guard: {}, silent: false, consoles: [], address: '', close: async () => {}, stand: () => {}, tellTopics: () => {},
    tellFleet: () => {}, describe: () => {}, tellValues: () => {}, asked: [] };
  const sockets = new Set();
  const server = createServer(async (request, response) => {
    const path = request.url === '/' ? 'index.html' : request.url.slice(1).split('?')[0];
    const bytes = await readFile(join(DIST, path)).catch(() => null);
    response.writeHead(bytes === null ? 404 : 200, { 'content-type': TYPES[extname(path)] ?? 'text/plain' }).end(bytes);
  });
  server.on('upgrade', (request, socket) => {
    const key = createHash('sha1').update(request.headers['sec-websocket-key'] + WEBSOCKET).digest('base64');
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${key}\r\n\r\n`);
    standIn.consoles.push(/console=([0-9a-f]+)/.exec(request.url)?.[1]);
    sockets.add(socket);
    const json = (kind, value) => send(socket, Buffer.concat([Buffer.of(kind), Buffer.from(JSON.stringify(value))]));
    json(5, { vehicle: 'stand-in', version: '', picture: null });
    json(7, { role: 'drives', holder: { address: 'here', sinceUnixMs: 0 }, request: null, reason: 'vacant' });
    standIn.stand = (standing) => json(7, standing);
    standIn.tellTopics = (topics) => json(8, topics);
    standIn.tellFleet = (fleet) => json(9, fleet);
    standIn.describe = (described) => send(socket, Buffer.concat([Buffer.of(10), descriptionBytes(described)]));
    standIn.tellValues = (revision, readings) => send(socket, Buffer.concat([Buffer.of(11), valuesBytes(revision, readings)]));
    const telling = setInterval(() => {
      if (!standIn.silent) send(socket, telemetry(standIn.guard));
    }, TELL_MS);
    const end = () => {
      clearInterval(telling);
      sockets.delete(socket);
    };
    socket.on('close', end);
    socket.on('error', end);
    let waiting = Buffer.alloc(0);
    socket.on('data', (bytes) => {
      waiting = readFrames(Buffer.concat([waiting, bytes]), (message) => {
        if (message[0] === 1) standIn.commands.push({ ...command(message.subarray(1)), at: performance.now() });
        else if (message[0] === 3) send(socket, pong(message));
        else if (message[0] !== 4) standIn.asked.push([...message]);
      });
    });
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => { server.once('listening', resolve); });
  standIn.address = `http://127.0.0.1:${server.address().port}/`;
  standIn.close = async () => {
    for (const socket of sockets) socket.destroy();
    server.closeAllConnections();
    await new Promise((resolve) => { server.close(resolve); });
  };
  return standIn;
}

function send(socket, payload) {
  const head = payload.length < 126 ? Buffer.of(0x82, payload.length) : Buffer.of(0x82, 126, payload.length >> 8, payload.length & 255);
  if (socket.writable) socket.write(Buffer.concat([head, payload]));
}

/**
 * Passes the payload of each complete binary frame of the page to `take`, unmasked. Returns the
 * bytes after the last complete frame. Frames must be shorter than 64 kB.
 */
function readFrames(bytes, take) {
  for (;;) {
    if (bytes.length < 6) return bytes;
    const short = bytes[1] & 127;
    const at = short === 126 ? 4 : 2;
    const length = short === 126 ? bytes.readUInt16BE(2) : short;
    if (bytes.length < at + 4 + length) return bytes;
    const mask = bytes.subarray(at, at + 4);
    const payload = Buffer.from(bytes.subarray(at + 4, at + 4 + length));
    for (let i = 0; i < length; i += 1) payload[i] ^= mask[i & 3];
    if ((bytes[0] & 15) === 2) take(payload);
    bytes = bytes.subarray(at + 4 + length);
  }
}

function pong(ping) {
  const answer = Buffer.alloc(17);
  answer[0] = 4;
  ping.copy(answer, 1, 1, 9);
  answer.writeBigUInt64BE(BigInt(Date.now()) * 1_000n, 9);
  return answer;
}

/** Decodes a command by the numbers of command.fbs. */
function command(bytes) {
  const buffer = new ByteBuffer(new Uint8Array(bytes));
  const table = buffer.readInt32(0);
  const at = (id) => {
    const offset = buffer.__offset(table, 4 + 2 * id);
    return offset === 0 ? 0 : table + offset;
  };
  const u32 = (id) => (at(id) === 0 ? 0 : buffer.readUint32(at(id)));
  const controls = at(0);
  const [act, twist] = [at(3), at(9)];
  return {
    steering: buffer.readFloat32(controls + 16),
    throttle: buffer.readFloat32(controls + 20),
    brake: buffer.readFloat32(controls + 24),
    gear: buffer.readUint8(controls + 28),
    emergencyStop: buffer.readUint8(controls + 29) !== 0,
    // Absent of a car.
    twist: twist === 0 ? null : [0, 4, 8].map((at) => buffer.readFloat32(twist + at)),
    act: act === 0 ? null : { number: buffer.readUint32(act), stop: buffer.readUint32(act + 4), deed: buffer.readUint8(act + 8) },
    emergencyStopNumber: u32(4),
    deadMan: at(5) === 0 ? 0 : buffer.readUint8(at(5)),
    absences: u32(6),
    axes: at(10) === 0 ? [] : floats(buffer, at(10)),
    actions: u32(11),
  };
}

/** Reads a vector of numbers whose offset is at this place. */
function floats(buffer, at) {
  const start = at + buffer.readInt32(at);
  return Array.from({ length: buffer.readInt32(start) }, (_, index) => buffer.readFloat32(start + 4 + 4 * index));
}

/**
 * Encodes telemetry by the numbers of telemetry.fbs, with this state of the guard or, for null,
 * without any.
 */
function telemetry(guard) {
  const builder = new Builder(512);
  const status = guard === null ? 0 : builder.createByteVector(statusFrame(guard));
  builder.startObject(6);
  builder.addFieldOffset(2, status, 0);
  builder.finish(builder.endObject(), 'TLT3');
  return Buffer.concat([Buffer.of(2), builder.asUint8Array()]);
}

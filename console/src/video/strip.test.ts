import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Slice, SliceKind } from '../wire';
import { type Origin, StripDecoder } from './strip';

interface Chunk {
  type: string;
  timestamp: number;
}

interface Frame {
  timestamp: number;
  isClosed: boolean;
  close(): void;
}

/** Decoder that outputs frames when the test calls for them, so that it can fall behind. */
class FakeVideoDecoder {
  static opened: FakeVideoDecoder[] = [];
  static refusesConfig = false;
  state = 'unconfigured';
  readonly waiting: Chunk[] = [];
  throwsOnDecode = false;

  constructor(readonly init: { output(frame: Frame): void; error(error: Error): void }) {
    FakeVideoDecoder.opened.push(this);
  }

  configure(): void {
    if (FakeVideoDecoder.refusesConfig) throw new TypeError('config');
    this.state = 'configured';
  }

  decode(chunk: Chunk): void {
    if (this.throwsOnDecode) throw new TypeError('decode');
    this.waiting.push(chunk);
  }

  close(): void {
    if (this.state === 'closed') throw new Error('closed twice');
    this.state = 'closed';
  }

  putOut(): Frame {
    const chunk = this.waiting.shift()!;
    const frame: Frame = { timestamp: chunk.timestamp, isClosed: false, close: () => { frame.isClosed = true; } };
    this.init.output(frame);
    return frame;
  }

  fail(): void {
    this.state = 'closed';
    this.init.error(new Error('decode'));
  }
}

class FakeChunk {
  readonly type: string;
  readonly timestamp: number;

  constructor({ type, timestamp }: Chunk) {
    this.type = type;
    this.timestamp = timestamp;
  }
}

let shown: Origin[];
let drops: Record<string, number>;
let requests: number;
let pictures: number;

beforeEach(() => {
  vi.stubGlobal('VideoDecoder', FakeVideoDecoder);
  vi.stubGlobal('EncodedVideoChunk', FakeChunk);
  FakeVideoDecoder.opened = [];
  FakeVideoDecoder.refusesConfig = false;
  [shown, drops, requests, pictures] = [[], {}, 0, 0];
});
afterEach(() => vi.unstubAllGlobals());

function makeStrip(): StripDecoder {
  return new StripDecoder(2, { codec: 'avc1.42c01f' }, {
    frame: (_, origin) => shown.push(origin),
    drop: (name, count) => { drops[name] = (drops[name] ?? 0) + count; },
    requestKeyframe: () => { requests += 1; },
  });
}

function slice(kind: SliceKind): Slice {
  pictures += 1;
  return { strip: 2, kind, picture: pictures, capturedAtUs: pictures * 1_000, encodedAfterUs: 3_000, handedOnAfterUs: 9_000, history: null, corrupt: false, tick: 7, bytes: Uint8Array.of(0, 0, 0, 1) };
}

const opened = FakeVideoDecoder;
const newest = (): FakeVideoDecoder => opened.opened.at(-1)!;

describe('the start', () => {
  it('drops and counts slices before the first IDR, requests one, and has a decoder ready', () => {
    const strip = makeStrip();
    for (const kind of ['predicted', 'skip', 'predicted'] as const) strip.feed(slice(kind), 0);
    expect([drops, requests, opened.opened.length]).toEqual([{ 'awaiting IDR': 3 }, 3, 1]);
    strip.feed(slice('idr'), 0);
    expect([opened.opened.length, newest().waiting.length]).toEqual([1, 1]);
  });

  it('decodes from the IDR on, with a key chunk first and rising timestamps', () => {
    const strip = makeStrip();
    for (const kind of ['idr', 'predicted', 'skip', 'idr'] as const) strip.feed(slice(kind), 0);
    expect(newest().waiting.map((chunk) => chunk.type)).toEqual(['key', 'delta', 'delta', 'key']);
    const timestamps = newest().waiting.map((chunk) => chunk.timestamp);
    expect(timestamps).toEqual([...new Set(timestamps)].sort((a, b) => a - b));
    expect([drops, requests, opened.opened.length]).toEqual([{}, 0, 1]);
  });
});

describe('frames', () => {
  it('come with the data of their slices', () => {
    const strip = makeStrip();
    strip.feed(slice('idr'), 0);
    strip.feed(slice('skip'), 0);
    newest().putOut();
    newest().putOut();
    expect(shown).toEqual([
      { strip: 2, picture: 1, capturedAtUs: 1_000, skip: false, clean: true, tick: 7, encodedAfterUs: 3_000, handedOnAfterUs: 9_000, fedAtMs: 0 },
      { strip: 2, picture: 2, capturedAtUs: 2_000, skip: true, clean: false, tick: 7, encodedAfterUs: 3_000, handedOnAfterUs: 9_000, fedAtMs: 0 },
    ]);
  });

  it('of a closed decoder are closed and not shown', () => {
    const strip = makeStrip();
    strip.feed(slice('idr'), 0);
    const before = newest();
    strip.close();
    strip.feed(slice('idr'), 10);
    expect(before.putOut().isClosed).toBe(true);
    expect(shown).toEqual([]);
    newest().putOut();
    expect(shown.map((origin) => origin.picture)).toEqual([2]);
  });

  it('remove older ones, which never come, from the queue', () => {
    const strip = makeStrip();
    strip.feed(slice('idr'), 0);
    strip.feed(slice('predicted'), 90);
    newest().waiting.shift();
    newest().putOut();
    for (const nowMs of [150, 200]) strip.feed(slice('predicted'), nowMs);
    expect(drops).toEqual({});
  });
});

describe('a decoder error', () => {
  it('is counted, closes the decoder and requests an IDR', () => {
    const strip = makeStrip();
    strip.feed(slice('idr'), 0);
    newest().fail();
    expect([drops, requests, newest().state]).toEqual([{ 'decoder error': 1 }, 1, 'closed']);
  });

  it('is followed by drops and requests until an IDR, which opens a new decoder', () => {
    const strip = makeStrip();
    strip.feed(slice('idr'), 0);
    newest().fail();
    strip.feed(slice('predicted'), 10);
    strip.feed(slice('predicted'), 20);
    expect([drops, requests]).toEqual([{ 'decoder error': 1, 'awaiting IDR': 2 }, 3]);
    expect(opened.opened.length).toBe(1);
    strip.feed(slice('idr'), 30);
    strip.feed(slice('predicted'), 40);
    expect(opened.opened.length).toBe(2);
    expect(newest().waiting.map((chunk) => chunk.type)).toEqual(['key', 'delta']);
    newest().putOut();
    expect(shown.map((origin) => origin.picture)).toEqual([4]);
  });

  it('of a replaced decoder changes nothing', () => {
    const strip = makeStrip();
    strip.feed(slice('idr'), 0);
    const before = newest();
    before.fail();
    strip.feed(slice('idr'), 10);
    before.fail();
    strip.feed(slice('predicted'), 20);
    expect([drops, requests, newest().waiting.length]).toEqual([{ 'decoder error': 1 }, 1, 2]);
  });

  it('thrown by decode counts the same', () => {
    const strip = makeStrip();
    strip.feed(slice('idr'), 0);
    newest().throwsOnDecode = true;
    strip.feed(slice('predicted'), 10);
    expect([drops, requests, newest().state]).toEqual([{ 'decoder error': 1 }, 1, 'closed']);
    strip.feed(slice('predicted'), 20);
    expect(drops).toEqual({ 'decoder error': 1, 'awaiting IDR': 1 });
  });

  it('thrown by configure counts the same, and each IDR tries again', () => {
    opened.refusesConfig = true;
    const strip = makeStrip();
    expect(drops).toEqual({});
    strip.feed(slice('idr'), 0);
    strip.feed(slice('idr'), 10);
    expect([drops, requests]).toEqual([{ 'decoder error': 2 }, 2]);
    opened.refusesConfig = false;
    strip.feed(slice('idr'), 20);
    expect(newest().waiting.length).toBe(1);
  });
});

describe('falling behind', () => {
  it('drops the queue and all slices until the next IDR, counts them, and requests it', () => {
    const strip = makeStrip();
    strip.feed(slice('idr'), 0);
    strip.feed(slice('predicted'), 50);
    strip.feed(slice('predicted'), 401); // The IDR waits too long; the grace period begins.
    expect(drops).toEqual({});
    const slow = newest();
    strip.feed(slice('predicted'), 431);
    expect([drops, requests, slow.state]).toEqual([{ 'decoder behind': 4 }, 1, 'closed']);
    strip.feed(slice('predicted'), 440);
    expect([drops, requests]).toEqual([{ 'decoder behind': 4, 'awaiting IDR': 1 }, 2]);
    strip.feed(slice('idr'), 450);
    newest().putOut();
    expect(opened.opened.length).toBe(2);
    expect(shown.map((origin) => origin.picture)).toEqual([6]);
    expect(drops).toEqual({ 'decoder behind': 4, 'awaiting IDR': 1 });
  });

  it('does not include a wait that an IDR could not have shortened', () => {
    const strip = makeStrip();
    strip.feed(slice('idr'), 0);
    for (let nowMs = 20; nowMs <= 400; nowMs += 20) strip.feed(slice('predicted'), nowMs);
    expect(drops).toEqual({});
  });

  it('does not include a blocked worker, if frames come within the grace period', () => {
    const strip = makeStrip();
    strip.feed(slice('idr'), 0);
    strip.feed(slice('predicted'), 1_000);
    newest().putOut();
    newest().putOut();
    strip.feed(slice('predicted'), 1_040);
    expect([drops, requests]).toEqual([{}, 0]);
  });

  it('does not include a burst after an outage', () => {
    const strip = makeStrip();
    strip.feed(slice('idr'), 0);
    for (let count = 1; count < 60; count += 1) strip.feed(slice('predicted'), 0);
    expect([drops, newest().waiting.length]).toEqual([{}, 60]);
  });

  it('includes a queue of sixty, however fresh', () => {
    const strip = makeStrip();
    strip.feed(slice('idr'), 0);
    for (let count = 1; count <= 60; count += 1) strip.feed(slice('predicted'), 0);
    expect([drops, requests]).toEqual([{ 'decoder behind': 61 }, 1]);
  });
});

describe('closing', () => {
  it('closes the decoder once, even if called twice or after an error', () => {
    const strip = makeStrip();
    strip.close();
    strip.feed(slice('idr'), 0);
    strip.close();
    strip.close();
    expect(newest().state).toBe('closed');
  });
});

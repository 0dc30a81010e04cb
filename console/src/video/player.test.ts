import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { OperatorClock } from '../clock';
import { Player } from './player';
import type { Screen } from './screen';

/** Decoder that outputs each frame when the test calls for it. */
class FakeVideoDecoder {
  static waiting: (() => void)[] = [];
  readonly state = 'configured';

  constructor(readonly init: { output(frame: VideoFrame): void }) {}

  configure(): void {}

  decode({ timestamp }: { timestamp: number }): void {
    FakeVideoDecoder.waiting.push(() => this.init.output({ timestamp, close: () => {} } as VideoFrame));
  }

  close(): void {}
}

class FakeChunk {
  readonly timestamp: number;

  constructor({ timestamp }: { timestamp: number }) {
    this.timestamp = timestamp;
  }
}

const STRIPS: [number, number][] = [[0, 32], [32, 32]];
const screen = { isLost: false, arrange: () => {}, draw: vi.fn(), stampOf: () => null };
let frames: (() => void)[];
let player: Player;

beforeEach(() => {
  vi.stubGlobal('VideoDecoder', FakeVideoDecoder);
  vi.stubGlobal('EncodedVideoChunk', FakeChunk);
  screen.isLost = false;
  screen.draw.mockClear();
  frames = [];
  player = new Player(screen as unknown as Screen, new OperatorClock(), () => {}, (call) => frames.push(call));
  player.start({ width: 64, height: 64, strips: STRIPS, codec: 'avc1.42c01f' });
});
afterEach(() => vi.unstubAllGlobals());

function decode(picture: number): void {
  for (const strip of STRIPS.keys()) {
    player.feed({
      strip, kind: 'idr', picture, capturedAtUs: picture * 1_000, encodedAfterUs: 0, handedOnAfterUs: 0, history: 0,
      corrupt: false, tick: picture * 10, bytes: Uint8Array.of(0, 0, 0, 1),
    });
  }
  for (const putOut of FakeVideoDecoder.waiting.splice(0)) putOut();
}

function screenFrame(): void {
  for (const call of frames.splice(0)) call();
}

const seen = () => player.seen()?.picture ?? null;
const lost = () => player.view().drops.find(({ name }) => name === 'canvas lost')?.count;

describe('a picture', () => {
  it('is seen with the frame after its drawing', () => {
    decode(1);
    expect(seen()).toBeNull();
    screenFrame();
    expect([seen(), player.seen()?.tick, lost()]).toEqual([1, 10, 0]);
  });

  it('is neither drawn nor seen while the canvas is lost, and is counted', () => {
    decode(1);
    screenFrame();
    screen.isLost = true;
    for (const picture of [2, 3]) {
      decode(picture);
      screenFrame();
    }
    expect([seen(), lost(), screen.draw.mock.calls.length]).toEqual([1, 4, 2]);
    screen.isLost = false;
    decode(4);
    screenFrame();
    expect([seen(), lost()]).toEqual([4, 4]);
  });

  it('stays seen until pictures of another size of the same vehicle arrive', () => {
    const format = { width: 128, height: 128, strips: STRIPS, codec: 'avc1.42c01f' };
    decode(1);
    screenFrame();
    player.start(format, true);
    screenFrame();
    expect(seen()).toBe(1);
    decode(2);
    screenFrame();
    expect(seen()).toBe(2);
    player.start(format);
    screenFrame();
    expect(seen()).toBeNull();
  });

  it('is not seen if the canvas is lost between its drawing and its frame', () => {
    decode(1);
    screenFrame();
    decode(2);
    screen.isLost = true;
    screenFrame();
    screen.isLost = false;
    decode(3);
    expect(seen()).toBe(1);
    screenFrame();
    expect(seen()).toBe(3);
  });
});

import { beforeEach, describe, expect, it, vi } from 'vitest';
import { Painter } from './painter';
import type { Origin } from './strip';

let frames: (() => void)[];
let drawn: string[];
let superseded: number;
let closed: number[];
/** Strips and pictures drawn so far, at the start of each frame of the screen. */
let begun: string[][];
let painter: Painter;

beforeEach(() => {
  [frames, drawn, superseded, closed, begun] = [[], [], 0, [], []];
  painter = new Painter({
    draw: (_, origin) => drawn.push(`${origin.strip}/${origin.picture}`),
    frame: () => { begun.push([...drawn]); },
    superseded: () => { superseded += 1; },
  }, (call) => frames.push(call));
});

function offer(strip: number, picture: number): void {
  const origin: Origin = { strip, picture, capturedAtUs: 0, skip: false, clean: true, tick: 0, encodedAfterUs: 0, handedOnAfterUs: 0, fedAtMs: 0 };
  painter.offer({ close: () => closed.push(picture) } as unknown as VideoFrame, origin);
}

function screenFrame(): void {
  const due = frames;
  frames = [];
  for (const call of due) call();
}

describe('painter', () => {
  it('draws the first frame of every strip on arrival and closes it', () => {
    offer(0, 1);
    offer(1, 1);
    expect(drawn).toEqual(['0/1', '1/1']);
    expect(closed).toEqual([1, 1]);
  });

  it('draws a second frame of a strip at the screen\'s next frame', () => {
    offer(0, 1);
    offer(0, 2);
    expect(drawn).toEqual(['0/1']);
    screenFrame();
    expect(drawn).toEqual(['0/1', '0/2']);
    expect(superseded).toBe(0);
  });

  it('draws only the newest waiting frame, closes the others and counts them', () => {
    for (let picture = 1; picture <= 5; picture += 1) offer(0, picture);
    screenFrame();
    expect(drawn).toEqual(['0/1', '0/5']);
    expect(superseded).toBe(3);
    expect(closed).toEqual([1, 2, 3, 4, 5]);
  });

  it('draws on arrival again after the screen\'s frame', () => {
    offer(0, 1);
    offer(0, 2);
    screenFrame();
    offer(0, 3);
    expect(drawn).toEqual(['0/1', '0/2', '0/3']);
  });

  it('requests one screen frame at a time, and none without frames', () => {
    for (let picture = 1; picture <= 3; picture += 1) offer(picture % 2, picture);
    expect(frames).toHaveLength(1);
    // One more is requested, which shows what was drawn within the first.
    screenFrame();
    expect(frames).toHaveLength(1);
    screenFrame();
    expect(frames).toHaveLength(0);
  });

  it('holds one frame per strip while the screen shows nothing', () => {
    for (let picture = 1; picture <= 100; picture += 1) offer(0, picture);
    expect(closed).toHaveLength(99);
  });

  it('closes waiting frames when it is cleared', () => {
    offer(0, 1);
    offer(0, 2);
    painter.clear();
    screenFrame();
    expect(drawn).toEqual(['0/1']);
    expect(closed).toEqual([1, 2]);
  });

  it('reports the start of a frame that shows what was drawn before', () => {
    offer(0, 1);
    offer(0, 2);
    screenFrame();
    // The second was drawn within the first frame: the next one shows it.
    screenFrame();
    expect(begun).toEqual([['0/1'], ['0/1', '0/2']]);
    screenFrame();
    expect(begun.length).toBe(2);
  });

  it('closes a frame that could not be drawn', () => {
    const close = vi.fn();
    const broken = new Painter({ draw: () => { throw new Error('no canvas'); }, frame: () => {}, superseded: () => {} }, () => {});
    const frame = { close } as unknown as VideoFrame;
    expect(() => broken.offer(frame, { strip: 0, picture: 1, capturedAtUs: 0, skip: false, clean: true, tick: 0, encodedAfterUs: 0, handedOnAfterUs: 0, fedAtMs: 0 })).toThrow('no canvas');
    expect(close).toHaveBeenCalledOnce();
  });
});

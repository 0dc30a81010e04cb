import { beforeEach, describe, expect, it, vi } from 'vitest';
import { Painter } from './painter';
import type { Origin } from './strip';

let tasks: (() => void)[];
let drawn: string[];
let superseded: number;
let closed: number[];
let painter: Painter;

beforeEach(() => {
  [tasks, drawn, superseded, closed] = [[], [], 0, []];
  painter = new Painter({
    draw: (_, origin) => drawn.push(`${origin.strip}/${origin.picture}`),
    superseded: () => { superseded += 1; },
  }, (call) => tasks.push(call));
});

function offer(strip: number, picture: number): void {
  const origin: Origin = { strip, picture, capturedAtUs: 0, skip: false };
  painter.offer({ close: () => closed.push(picture) } as unknown as VideoFrame, origin);
}

function workerFree(): void {
  const due = tasks;
  tasks = [];
  for (const call of due) call();
}

describe('painter', () => {
  it('draws every frame when the worker keeps up, and closes it', () => {
    for (let picture = 1; picture <= 3; picture += 1) {
      offer(0, picture);
      offer(1, picture);
      workerFree();
    }
    expect(drawn).toEqual(['0/1', '1/1', '0/2', '1/2', '0/3', '1/3']);
    expect(closed).toEqual([1, 1, 2, 2, 3, 3]);
    expect(superseded).toBe(0);
  });

  it('draws only the newest of a strip after the worker was held up, closes the others and counts them', () => {
    for (let picture = 1; picture <= 5; picture += 1) offer(0, picture);
    offer(1, 3);
    workerFree();
    expect(drawn).toEqual(['0/5', '1/3']);
    expect(superseded).toBe(4);
    expect(closed.sort()).toEqual([1, 2, 3, 3, 4, 5]);
  });

  it('asks once for all that came, and not when nothing comes', () => {
    offer(0, 1);
    offer(1, 1);
    expect(tasks).toHaveLength(1);
    workerFree();
    expect(tasks).toHaveLength(0);
  });

  it('holds one frame a strip', () => {
    for (let picture = 1; picture <= 100; picture += 1) offer(0, picture);
    expect(closed).toHaveLength(99);
  });

  it('closes what waits when it is cleared', () => {
    offer(0, 1);
    painter.clear();
    workerFree();
    expect(drawn).toEqual([]);
    expect(closed).toEqual([1]);
  });

  it('closes a frame that could not be drawn', () => {
    const close = vi.fn();
    const broken = new Painter({ draw: () => { throw new Error('no canvas'); }, superseded: () => {} }, (call) => tasks.push(call));
    broken.offer({ close } as unknown as VideoFrame, { strip: 0, picture: 1, capturedAtUs: 0, skip: false });
    expect(workerFree).toThrow('no canvas');
    expect(close).toHaveBeenCalledOnce();
  });
});

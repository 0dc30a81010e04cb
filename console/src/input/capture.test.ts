import { describe, expect, it } from 'vitest';
import type { Source } from './bindings';
import { Capture, drivesBy, sourceWords } from './capture';
import { standardMapping } from './mapping';

const pad = (axes: number[], ...buttons: number[]) => ({ id: 'pad', index: 0, mapping: '', axes, buttons: buttons.map((value) => ({ value, pressed: value > 0.5 })) });

describe('a capture', () => {
  it('is the first button or stick that moves, not what was held from the start', () => {
    const capture = new Capture([pad([1, 0], 1, 0)]);
    expect(capture.observe([pad([1, 0.3], 1, 0.4)])).toBeNull();
    expect(capture.observe([pad([1, -0.9], 1, 0)])).toEqual({ kind: 'axis', device: 'pad', axis: 1, side: -1 });
    expect(capture.observe([pad([1, 0], 1, 1)])).toEqual({ kind: 'button', device: 'pad', button: 1 });
  });

  it('ignores a device that was connected since, and an axis that returns to its middle', () => {
    expect(new Capture([]).observe([pad([1], 1)])).toBeNull();
    expect(new Capture([pad([1])]).observe([pad([0])])).toBeNull();
  });
});

describe('a source', () => {
  it('drives already if the device\'s mapping has it', () => {
    const drives = (source: Source) => drivesBy(standardMapping('omni'), source);
    const button = (number: number): Source => ({ kind: 'button', device: 'pad', button: number });
    const axis = (number: number): Source => ({ kind: 'axis', device: 'pad', axis: number, side: 1 });
    expect([button(1), button(7), button(5), axis(1), axis(2), axis(3)].map(drives)).toEqual([true, true, false, true, true, false]);
    expect([drivesBy(null, axis(0)), drives({ kind: 'key', code: 'KeyW' })]).toEqual([false, false]);
  });

  it('has words', () => {
    const sources: (Source | null)[] = [null, { kind: 'key', code: 'KeyK' }, { kind: 'key', code: 'Comma' }, { kind: 'button', device: 'pad', button: 5 }, { kind: 'axis', device: 'pad', axis: 3, side: -1 }];
    expect(sources.map(sourceWords)).toEqual(['none', 'K', ',', 'button 5', 'axis 3 −']);
  });
});

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type Said, seal, statusFrame } from '../e2e/status.mjs';
import { STATUS_FRAME } from './generated/kinds';
import { crcOf, readStatusFrame } from './status-frame';

/** Returns the bytes of the vector `status` of docs/guard.md. */
function vector(): Uint8Array {
  const guide = readFileSync(new URL('../../docs/guard.md', import.meta.url), 'utf8');
  const digits = /Vector `status`\s+```hex\s([0-9a-f\s]+)```/.exec(guide)![1]!.replace(/\s/g, '');
  return Uint8Array.from(digits.match(/../g)!, (pair) => Number.parseInt(pair, 16));
}

/** Cuts or extends a frame to `length`, and sets its length field and CRC to match. */
function resized(frame: Uint8Array, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  bytes.set(frame.subarray(0, length));
  new DataView(bytes.buffer).setUint16(0, length);
  return seal(bytes);
}

/** Returns the numbers of 16 axes of which one has this. */
function axesWith(index: number, value: number): number[] {
  return Array.from({ length: 16 }, (_, axis) => (axis === index ? value : NaN));
}

/** Pseudorandom numbers below 2^24, the same in every run. */
function* random(seed: number): Generator<number, never> {
  let state = seed;
  for (;;) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    yield state >>> 8;
  }
}

describe('a status frame', () => {
  it('is read as the guard writes it, byte by byte', () => {
    const frame = vector();
    expect(crcOf(frame)).toBe(new DataView(frame.buffer).getUint32(8));
    expect(readStatusFrame(frame)).toEqual({
      mode: 'limited', cause: 'loop age', value: 260, limit: 200, stop: 12, latched: true, emergencyStop: 3,
      answer: { console: 0xc0ffeen, number: 4, outcome: 'other stop' },
      blockers: ['latched', 'moving'], holder: 0xc0ffeen, loopAgeMs: 260,
      speedBoundMps: 11.5, sidewaysBoundMps: 0.5, yawRateBound: 1.5, motion: 'omni',
      countdown: { cause: 'picture age', leftMs: 240 }, throttle: 0, brake: 0.5, setPoints: axesWith(1, 0.75), twist: { forward: -0.25, sideways: 0.125, yawRate: 1.5 },
      machine: {
        ageMs: 10, speedMps: 8.5, sidewaysMps: 0.25, yawRate: -0.5, steeringAngleRad: -0.125, gear: 0, notices: ['parking brake'], faults: ['steering', 'other'],
        axes: axesWith(1, 0.625), actions: 0b1_0010_0000, description: 3_730_571_265, told: { accelerationAlong: 0.5, accelerationAcross: 1.5, charge: 2.5 },
      },
      blackBox: 'disk full', decelerationBegin: 1.5, deceleration: 4, jerk: 5, yawDeceleration: 2.5, reverseMaxMps: 4,
    });
  });

  it('is read within other bytes', () => {
    const frame = vector();
    const within = new Uint8Array(frame.length + 7);
    within.set(frame, 3);
    expect(readStatusFrame(within.subarray(3, 3 + frame.length))).toEqual(readStatusFrame(frame));
  });

  it('is read with fewer and with more numbers at its end', () => {
    const { bytesLeast, bytesMax } = STATUS_FRAME;
    for (let length = bytesLeast - 4; length <= bytesMax + 4; length += 1) {
      const read = readStatusFrame(resized(vector(), length));
      const fits = length >= bytesLeast && length <= bytesMax && (length - bytesLeast) % 4 === 0;
      expect(read !== null, `${length} bytes`).toBe(fits);
      if (fits) expect(read!.machine!.told.charge).toBe(length < bytesLeast + 12 ? null : 2.5);
    }
  });

  it('is none with any bit changed', () => {
    const frame = vector();
    for (let bit = 0; bit < frame.length * 8; bit += 1) {
      frame[bit >> 3]! ^= 1 << (bit & 7);
      expect(readStatusFrame(frame)).toBeNull();
      frame[bit >> 3]! ^= 1 << (bit & 7);
    }
  });

  it('is none with a kind or a bit that no list has, or a value that contradicts itself', () => {
    const spoilt: Said[] = [
      { mode: 5 }, { motion: 3 }, { cause: 200 }, { blackBox: 6 }, { gear: 2 }, { blockers: 1 << 31 }, { notices: 16 }, { faults: 1 << 10 },
      { tick: 0 }, { countdown: { cause: 99, leftMs: 5 } }, { report: { console: 0n, number: 5, outcome: 1 } },
      { report: { console: 1n, number: 5, outcome: 0 } }, { report: { console: 1n, number: 5, outcome: 99 } },
    ];
    expect(readStatusFrame(statusFrame())).not.toBeNull();
    for (const said of spoilt) expect(readStatusFrame(statusFrame(said)), JSON.stringify(said, (_, value) => String(value))).toBeNull();
  });

  it('throws on no bytes, with a sound CRC or without', () => {
    const numbers = random(7);
    const next = () => numbers.next().value;
    const sound = vector();
    for (let round = 0; round < 4_000; round += 1) {
      const bytes = Uint8Array.from({ length: next() % 300 }, () => (next() % 4 === 0 ? next() : 0));
      expect(readStatusFrame(bytes)).toBeNull();
      const frame = sound.slice();
      for (let change = 0; change < 1 + round % 6; change += 1) frame[12 + next() % (frame.length - 12)] = next();
      const read = readStatusFrame(seal(frame));
      if (read !== null) for (const value of [read.value, read.limit, read.speedBoundMps, read.jerk]) expect(Number.isFinite(value)).toBe(true);
    }
  });
});

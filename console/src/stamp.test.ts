import { describe, expect, it } from 'vitest';
import { STAMP_HEIGHT, STAMP_WIDTH, crc8, readStamp, stampAge } from './stamp';

const WHITE = 235;
const BLACK = 16;
const VALUES = [0, 1, 0x80000000, 0xffffffff, 0xdeadbeef, 1_234_567_890];

/** Returns the 42 cells (true = white) by their definition, independent of the reader's code. */
function cellsOf(value: number): boolean[] {
  const bits = (number: number, count: number): boolean[] =>
    [...number.toString(2).padStart(count, '0')].map((digit) => digit === '1');
  return [true, false, ...bits(value, 32), ...bits(crc8(value), 8)];
}

function paint(cells: readonly boolean[], width = STAMP_WIDTH, white = WHITE, black = BLACK): Uint8ClampedArray {
  const rgba = new Uint8ClampedArray(width * STAMP_HEIGHT * 4).fill(90);
  cells.forEach((isWhite, cell) => {
    for (let y = 0; y < 8; y += 1) {
      for (let x = cell * 8; x < cell * 8 + 8; x += 1) {
        const at = (y * width + x) * 4;
        rgba.fill(isWhite ? white : black, at, at + 3);
        rgba[at + 3] = 255;
      }
    }
  });
  return rgba;
}

describe('crc8', () => {
  it('is 0 for the value 0, without a preset', () => expect(crc8(0)).toBe(0));
  it('is the polynomial itself for the value 1', () => expect(crc8(1)).toBe(0x07));
  it('matches the published table: 0x80 gives 0x89, 0xff gives 0xf3', () => {
    expect(crc8(0x80)).toBe(0x89);
    expect(crc8(0xff)).toBe(0xf3);
  });
});

describe('readStamp', () => {
  it.each(VALUES)('reads %i from clean cells', (value) => {
    expect(readStamp(paint(cellsOf(value)), STAMP_WIDTH)).toBe(value);
  });

  it('reads from a picture wider than the stamp', () => {
    expect(readStamp(paint(cellsOf(0xdeadbeef), 640), 640)).toBe(0xdeadbeef);
  });

  it('rejects any single flipped cell', () => {
    for (const value of VALUES) {
      for (let flipped = 0; flipped < 42; flipped += 1) {
        const cells = cellsOf(value).map((white, cell) => (cell === flipped ? !white : white));
        expect(readStamp(paint(cells), STAMP_WIDTH), `value ${value}, cell ${flipped}`).toBeNull();
      }
    }
  });

  it('rejects any two flipped value cells', () => {
    const cells = cellsOf(0xdeadbeef);
    for (let one = 2; one < 34; one += 1) {
      for (let other = one + 1; other < 34; other += 1) {
        const flipped = cells.map((white, cell) => (cell === one || cell === other ? !white : white));
        expect(readStamp(paint(flipped), STAMP_WIDTH), `cells ${one} and ${other}`).toBeNull();
      }
    }
  });

  it('ignores the rims of cells, which coding blurs', () => {
    const rgba = paint(cellsOf(0xdeadbeef));
    for (let y = 0; y < 8; y += 1) {
      for (let x = 0; x < STAMP_WIDTH; x += 1) {
        const isRim = y < 2 || y > 5 || x % 8 < 2 || x % 8 > 5;
        if (isRim) rgba.fill(255 - rgba[(y * STAMP_WIDTH + x) * 4]!, (y * STAMP_WIDTH + x) * 4, (y * STAMP_WIDTH + x) * 4 + 3);
      }
    }
    expect(readStamp(rgba, STAMP_WIDTH)).toBe(0xdeadbeef);
  });

  it('reads cells that lost most of their contrast', () => {
    expect(readStamp(paint(cellsOf(77), STAMP_WIDTH, 140, 116), STAMP_WIDTH)).toBe(77);
  });

  it('finds none in plain black, white or grey', () => {
    for (const level of [0, 127, 128, 255]) {
      const rgba = new Uint8ClampedArray(STAMP_WIDTH * STAMP_HEIGHT * 4).fill(level);
      expect(readStamp(rgba, STAMP_WIDTH)).toBeNull();
    }
  });

  it('finds none in a picture that is too narrow or too low', () => {
    const rgba = paint(cellsOf(5));
    expect(readStamp(rgba, STAMP_WIDTH - 1)).toBeNull();
    expect(readStamp(rgba.subarray(0, rgba.length - STAMP_WIDTH * 4), STAMP_WIDTH)).toBeNull();
  });
});

describe('stampAge', () => {
  const now = 1_760_000_000_123.25;
  const low = (ms: number): number => Math.floor(ms) % 2 ** 32;

  it('keeps the fraction of a millisecond', () => expect(stampAge(low(now - 80), now)).toBeCloseTo(80.25, 3));
  it('is negative for a stamp from the future', () => expect(stampAge(low(now + 40), now)).toBeCloseTo(-39.75, 3));
  it('counts across the wrap of the low 32 bits', () => {
    const wrap = 410 * 2 ** 32;
    expect(stampAge(low(wrap - 30), wrap + 20)).toBe(50);
  });
});

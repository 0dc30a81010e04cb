/**
 * The in-picture stamp: a row of 42 cells of 8x8 pixels from pixel (0, 0).
 *
 * Cell 0 is white and cell 1 black. Cells 2 to 33 are the value, most significant bit first, white
 * = 1. Cells 34 to 41 are its CRC-8. The value is the low 32 bits of the strip's captured_at in
 * Unix ms.
 */
const CELL = 8;
const CELL_COUNT = 42;
export const STAMP_WIDTH = CELL * CELL_COUNT;
export const STAMP_HEIGHT = CELL;

/**
 * Reads the stamp from RGBA pixels in rows of `width`; `null` if there is none, or the picture is
 * smaller than 336x8.
 */
export function readStamp(rgba: ArrayLike<number>, width: number): number | null {
  if (width < STAMP_WIDTH || rgba.length < width * STAMP_HEIGHT * 4) return null;
  if (!isWhite(rgba, width, 0) || isWhite(rgba, width, 1)) return null;
  const value = readBits(rgba, width, 2, 32);
  return readBits(rgba, width, 34, 8) === crc8(value) ? value : null;
}

/**
 * Returns the milliseconds from the stamp's time to `unixMs`. Correct if they are less than 24 days
 * apart.
 */
export function stampAge(value: number, unixMs: number): number {
  const whole = Math.floor(unixMs);
  return ((whole % 2 ** 32) - value | 0) + (unixMs - whole);
}

/** Returns the CRC-8 of the value's four big-endian bytes: polynomial 0x07, start 0. */
export function crc8(value: number): number {
  let crc = 0;
  for (const shift of [24, 16, 8, 0]) {
    crc ^= (value >>> shift) & 0xff;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x80 ? ((crc << 1) ^ 0x07) & 0xff : (crc << 1) & 0xff;
  }
  return crc;
}

function readBits(rgba: ArrayLike<number>, width: number, firstCell: number, count: number): number {
  let value = 0;
  for (let cell = firstCell; cell < firstCell + count; cell += 1) {
    value = value * 2 + (isWhite(rgba, width, cell) ? 1 : 0);
  }
  return value;
}

/**
 * Returns whether the cell is white, by the mean green of its inner 4x4 pixels, since coding blurs
 * its edges.
 */
function isWhite(rgba: ArrayLike<number>, width: number, cell: number): boolean {
  let sum = 0;
  for (let y = 2; y < 6; y += 1) {
    for (let x = 2; x < 6; x += 1) sum += rgba[(y * width + cell * CELL + x) * 4 + 1]!;
  }
  return sum / 16 >= 128;
}

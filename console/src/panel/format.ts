/** Numbers as the panels show them; `null` is a dash. */
import type { ValueView } from '../report';

export const UNKNOWN = '–';

/** Formats with one decimal below 10, else with none: 4.2, 42, 420. */
export function ms(value: number | null): string {
  if (value === null) return UNKNOWN;
  return Math.abs(value) < 9.95 ? value.toFixed(1) : value.toFixed(0);
}

export function megabits(bps: number): string {
  const value = bps / 1e6;
  return value < 99.95 ? value.toFixed(1) : value.toFixed(0);
}

export function kilobytes(bytes: number): string {
  return ms(bytes / 1000);
}

/** Formats a share as a percentage without its sign: 0, 0.04, 1.2, 35. */
export function percent(share: number | null): string {
  if (share === null) return UNKNOWN;
  const value = share * 100;
  if (value === 0) return '0';
  if (value < 0.995) return value.toFixed(2);
  return value < 9.95 ? value.toFixed(1) : value.toFixed(0);
}

export function count(value: number): string {
  return value.toLocaleString('en-GB');
}

/** Formats a named value in a unit that people read easily. A total is a count. */
export function quantity({ number, unit, total }: Omit<ValueView, 'name'>): string {
  if (total) return count(number);
  switch (unit) {
    case 's':
      return Math.abs(number) < 10 ? `${ms(number * 1000)} ms` : `${number.toFixed(0)} s`;
    case 'bit/s':
      return `${megabits(number)} Mbit/s`;
    case 'B':
      return `${kilobytes(number)} kB`;
    case '/s':
      return `${ms(number)} /s`;
    default:
      return `${number.toLocaleString('en-GB', { maximumFractionDigits: 3 })} ${unit}`.trimEnd();
  }
}

/** Formats a speed in km/h. */
export function kmh(mps: number | null): string {
  return mps === null ? UNKNOWN : signed(mps * 3.6, 0);
}

/** Formats a speed in m/s, with one decimal below 10. */
export function mps(value: number | null): string {
  return value === null ? UNKNOWN : signed(value, Math.abs(value) < 9.95 ? 1 : 0);
}

/** Formats a yaw rate in rad/s as degrees per second. */
export function degrees(rad: number | null): string {
  return rad === null ? UNKNOWN : signed((rad * 180) / Math.PI, 0);
}

/** Formats with this number of decimals, and without a minus sign before zero. */
export function signed(value: number, digits: number): string {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? (0).toFixed(digits) : text;
}

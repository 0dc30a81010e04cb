/** Numbers as the panels show them; null is a dash. */
export const UNKNOWN = '–';

/** Three figures at the most: 4.2, 42, 420. */
export function ms(value: number | null): string {
  if (value === null) return UNKNOWN;
  return Math.abs(value) < 9.95 ? value.toFixed(1) : value.toFixed(0);
}

export function megabits(bps: number): string {
  const value = bps / 1e6;
  return value < 99.95 ? value.toFixed(1) : value.toFixed(0);
}

/** Without the sign: 0, 0.04, 1.2, 35. */
export function percent(share: number): string {
  const value = share * 100;
  if (value === 0) return '0';
  if (value < 0.995) return value.toFixed(2);
  return value < 9.95 ? value.toFixed(1) : value.toFixed(0);
}

export function count(value: number): string {
  return value.toLocaleString('en-GB');
}

/** With its unit, and three decimals at the most: 12, 48.5 V. */
export function quantity(value: number, unit: string): string {
  const text = value.toLocaleString('en-GB', { maximumFractionDigits: 3 });
  return unit === '' ? text : `${text} ${unit}`;
}

/** No minus sign before a zero. */
export function signed(value: number, digits: number): string {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? (0).toFixed(digits) : text;
}

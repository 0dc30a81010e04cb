/**
 * Bands of the delay between steering and picture, by how drivers experience it: those of [UGV].
 */
export type Band = 'unnoticed' | 'noticed' | 'challenging' | 'difficult' | 'too late';

const BANDS: readonly [upToMs: number, band: Band][] = [
  [125, 'unnoticed'], [250, 'noticed'], [375, 'challenging'], [500, 'difficult'],
];

/** Returns the band of a delay. The upper limit of a band belongs to it. */
export function bandOf(delayMs: number): Band {
  return BANDS.find(([upToMs]) => delayMs <= upToMs)?.[1] ?? 'too late';
}

/**
 * Age above which the page dims the picture and shows its age: drivers find longer delays
 * difficult.
 */
export const LATE_MS = 375;

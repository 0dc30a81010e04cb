/** A driver's experience of the delay between wheel and picture: the bands of [UGV]. */
export type Band = 'unnoticed' | 'noticed' | 'challenging' | 'difficult' | 'too late';

const BANDS: readonly [upToMs: number, band: Band][] = [
  [125, 'unnoticed'], [250, 'noticed'], [375, 'challenging'], [500, 'difficult'],
];

/** Returns the band; its upper limit belongs to it. */
export function bandOf(delayMs: number): Band {
  return BANDS.find(([upToMs]) => delayMs <= upToMs)?.[1] ?? 'too late';
}

/** Age above which a picture is dimmed and shows its age: drivers find longer delays difficult. */
export const LATE_MS = 375;

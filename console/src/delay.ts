/** How a person fares with a delay between wheel and picture: the bands of [UGV]. */
export type Band = 'unnoticed' | 'noticed' | 'challenging' | 'difficult' | 'too late';

const BANDS: readonly [upToMs: number, band: Band][] = [
  [125, 'unnoticed'], [250, 'noticed'], [375, 'challenging'], [500, 'difficult'],
];

/** Each band goes up to and includes its delay. */
export function bandOf(delayMs: number): Band {
  return BANDS.find(([upToMs]) => delayMs <= upToMs)?.[1] ?? 'too late';
}

/** From here on a picture is not only challenging: it is shown dimmed, with its age. */
export const LATE_MS = 375;

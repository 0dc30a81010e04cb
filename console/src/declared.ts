/** Axes, actions and values that a machine declares, in addition to its motion. */


export interface Axis {
  name: string;
  /** Unit of its set point; empty for a bare number. */
  unit: string;
  /** Meaning of its set point: a position that it holds, or a speed with which it moves. */
  form: 'position' | 'speed';
  low: number;
  high: number;
  /** Largest change of the set point in units per second. */
  rate: number;
}

export interface Action {
  name: string;
  /** On while held down, switched on and off, or asked for once. */
  form: 'momentary' | 'switch' | 'request';
  /** State from the begin of a stop until the machine is armed again. */
  onStop: 'off' | 'keep' | 'on';
  /** True if a person may also ask for it while the machine is held. */
  allowedHeld: boolean;
}

/** A value that the machine reports. A limit is `null` if there is none. */
export interface ValueInfo {
  name: string;
  unit: string;
  form: 'number' | 'text';
  warnLow: number | null;
  warnHigh: number | null;
  alarmLow: number | null;
  alarmHigh: number | null;
}

export interface Description {
  /** Number that another description does not have; 0 of `NOTHING` alone. */
  revision: number;
  axes: Axis[];
  actions: Action[];
  values: ValueInfo[];
}

/** Description of a machine that declares nothing. */
export const NOTHING: Description = { revision: 0, axes: [], actions: [], values: [] };

/** Urgency of a number by the limits that the machine declares. */
export type Level = 'none' | 'warn' | 'alarm';

/** Returns the urgency of a number; an unknown one, which is `null`, has none. */
export function levelOf({ warnLow, warnHigh, alarmLow, alarmHigh }: ValueInfo, number: number | null): Level {
  if (number === null) return 'none';
  const beyond = (low: number | null, high: number | null): boolean => (low !== null && number < low) || (high !== null && number > high);
  return beyond(alarmLow, alarmHigh) ? 'alarm' : beyond(warnLow, warnHigh) ? 'warn' : 'none';
}

type Limit = number | null;

/** What a test says of a machine, by the numbers of the schema. */
export interface Described {
  revision: number;
  axes?: [name: string, unit: string, form: number, low: number, high: number, rate: number][];
  actions?: [name: string, form: number, onStop: number, allowedHeld: boolean][];
  values?: [name: string, unit: string, form: number, warnLow: Limit, warnHigh: Limit, alarmLow: Limit, alarmHigh: Limit][];
}

export function descriptionBytes(described: Described): Uint8Array;

/** Numbers or texts, by the numbers of their values. */
export function valuesBytes(revision: number, readings: Readonly<Record<number, number | string | null>>): Uint8Array;

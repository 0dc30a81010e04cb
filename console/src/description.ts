/**
 * Reads what a machine declares, and its newest readings, from their messages. Malformed bytes
 * throw.
 */
import type { Action, Axis, Description, ValueInfo } from './declared';
import { ActionForm } from './message/action-form';
import { ActionStop } from './message/action-stop';
import { AxisForm } from './message/axis-form';
import { Description as DescriptionMessage } from './message/description';
import { ValueForm } from './message/value-form';
import { Values } from './message/values';
import { BadMessage, flatBuffer } from './wire';

/** Newest readings of a machine's values by number; `null` if a number is unknown. */
export interface Readings {
  /** Revision of the description by which the values are numbered. */
  revision: number;
  readings: ReadonlyMap<number, number | string | null>;
}

// Largest numbers of entries that a machine may declare.
const AXES_MAX = 16;
const ACTIONS_MAX = 32;
const VALUES_MAX = 64;

const AXIS_FORMS: Readonly<Record<AxisForm, Axis['form']>> = { [AxisForm.Position]: 'position', [AxisForm.Speed]: 'speed' };
const ACTION_FORMS: Readonly<Record<ActionForm, Action['form']>> = {
  [ActionForm.Momentary]: 'momentary', [ActionForm.Switch]: 'switch', [ActionForm.Request]: 'request',
};
const ACTION_STOPS: Readonly<Record<ActionStop, Action['onStop']>> = {
  [ActionStop.Off]: 'off', [ActionStop.Keep]: 'keep', [ActionStop.On]: 'on',
};
const VALUE_FORMS: Readonly<Record<ValueForm, ValueInfo['form']>> = { [ValueForm.Number]: 'number', [ValueForm.Text]: 'text' };

export function readDescription(message: ArrayBuffer): Description {
  const told = DescriptionMessage.getRootAsDescription(flatBuffer(message, DescriptionMessage.bufferHasIdentifier));
  return {
    revision: told.revision(),
    axes: list(told.axesLength(), AXES_MAX, (index) => {
      const axis = present(told.axes(index));
      const [low, high, rate] = [finite(axis.low()), finite(axis.high()), finite(axis.rate())];
      if (low >= high || rate <= 0) throw new BadMessage(`axis from ${low} to ${high} at ${rate}`);
      return { name: present(axis.name()), unit: axis.unit() ?? '', form: known(AXIS_FORMS, axis.form()), low, high, rate };
    }),
    actions: list(told.actionsLength(), ACTIONS_MAX, (index) => {
      const action = present(told.actions(index));
      return {
        name: present(action.name()), form: known(ACTION_FORMS, action.form()), onStop: known(ACTION_STOPS, action.onStop()),
        allowedHeld: action.allowedHeld(),
      };
    }),
    values: list(told.valuesLength(), VALUES_MAX, (index) => {
      const value = present(told.values(index));
      return {
        name: present(value.name()), unit: value.unit() ?? '', form: known(VALUE_FORMS, value.form()),
        warnLow: orNone(value.warnLow()), warnHigh: orNone(value.warnHigh()), alarmLow: orNone(value.alarmLow()), alarmHigh: orNone(value.alarmHigh()),
      };
    }),
  };
}

export function readValues(message: ArrayBuffer): Readings {
  const told = Values.getRootAsValues(flatBuffer(message, Values.bufferHasIdentifier));
  const readings = list(told.readingsLength(), VALUES_MAX, (at) => {
    const reading = present(told.readings(at));
    return [reading.index(), reading.text() ?? orNone(reading.number())] as const;
  });
  return { revision: told.revision(), readings: new Map(readings) };
}

function list<T>(length: number, bound: number, read: (index: number) => T): T[] {
  if (length > bound) throw new BadMessage(`list of ${length}`);
  return Array.from({ length }, (_, index) => read(index));
}

function present<T>(value: T | null): T {
  if (value === null) throw new BadMessage('missing field');
  return value;
}

function known<T>(names: Readonly<Record<number, T>>, value: number): T {
  const name = names[value];
  if (name === undefined) throw new BadMessage(`unknown kind ${value}`);
  return name;
}

function finite(value: number): number {
  if (!Number.isFinite(value)) throw new BadMessage('number is not finite');
  return value;
}

/** Returns `null` for a number that is none. */
function orNone(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

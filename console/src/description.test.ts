import { describe, expect, it } from 'vitest';
import { type Described, descriptionBytes, valuesBytes } from '../e2e/described.mjs';
import { readDescription, readValues } from './description';
import { FROM_OPERATOR } from './generated/kinds';
import { BadMessage } from './wire';

const ROVER: Described = {
  revision: 0xfedc_ba98,
  axes: [['boom', 'rad', 0, -1, 2, 0.5], ['winch', '', 1, -0.25, 0.5, 1]],
  actions: [['horn', 0, 0, true], ['lights', 1, 1, true], ['dock', 2, 2, false]],
  values: [['battery', 'V', 0, 24, null, 20, null], ['state', '', 1, null, null, null, null]],
};

function messageOf(kind: number, bytes: Uint8Array): ArrayBuffer {
  const message = new Uint8Array(1 + bytes.length);
  message[0] = kind;
  message.set(bytes, 1);
  return message.buffer;
}
const read = (described: Described) => readDescription(messageOf(FROM_OPERATOR.description, descriptionBytes(described)));

describe('a description', () => {
  it('is read with its axes, actions and values', () => {
    expect(read(ROVER)).toEqual({
      revision: 0xfedc_ba98,
      axes: [
        { name: 'boom', unit: 'rad', form: 'position', low: -1, high: 2, rate: 0.5 },
        { name: 'winch', unit: '', form: 'speed', low: -0.25, high: 0.5, rate: 1 },
      ],
      actions: [
        { name: 'horn', form: 'momentary', onStop: 'off', allowedHeld: true },
        { name: 'lights', form: 'switch', onStop: 'keep', allowedHeld: true },
        { name: 'dock', form: 'request', onStop: 'on', allowedHeld: false },
      ],
      values: [
        { name: 'battery', unit: 'V', form: 'number', warnLow: 24, warnHigh: null, alarmLow: 20, alarmHigh: null },
        { name: 'state', unit: '', form: 'text', warnLow: null, warnHigh: null, alarmLow: null, alarmHigh: null },
      ],
    });
    expect(read({ revision: 1 })).toEqual({ revision: 1, axes: [], actions: [], values: [] });
  });

  it('is malformed with a form that is unknown, a range without width, a rate of 0, or too many entries', () => {
    const spoilt: Described[] = [
      { revision: 1, axes: [['boom', '', 2, 0, 1, 1]] }, { revision: 1, axes: [['boom', '', 0, 1, 1, 1]] }, { revision: 1, axes: [['boom', '', 0, 0, 1, 0]] },
      { revision: 1, axes: [['boom', '', 0, NaN, 1, 1]] }, { revision: 1, actions: [['horn', 3, 0, true]] }, { revision: 1, actions: [['horn', 0, 3, true]] },
      { revision: 1, values: [['battery', 'V', 2, null, null, null, null]] },
      { revision: 1, axes: Array.from({ length: 17 }, (_, index) => [`axis ${index}`, '', 0, 0, 1, 1]) },
    ];
    for (const described of spoilt) expect(() => read(described), JSON.stringify(described)).toThrow(BadMessage);
  });
});

describe('readings', () => {
  it('are numbers, texts, or unknown', () => {
    const told = readValues(messageOf(FROM_OPERATOR.values, valuesBytes(7, { 0: 24.5, 1: 'docked', 63: null })));
    expect(told).toEqual({ revision: 7, readings: new Map<number, number | string | null>([[0, 24.5], [1, 'docked'], [63, null]]) });
  });

  it('are malformed without the identifier', () => {
    expect(() => readValues(messageOf(FROM_OPERATOR.values, descriptionBytes({ revision: 1 })))).toThrow(BadMessage);
    expect(() => readValues(new ArrayBuffer(3))).toThrow(BadMessage);
  });
});

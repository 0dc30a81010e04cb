// Checks the figures of `make delays` on guard steps with known delays. Needs no browser.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { measured, quantile } from '../soak/quantities.mjs';

/** Time in ms by which the vehicle's clock is behind the guard's. */
const BEHIND_MS = 5_000;

/**
 * Returns `count` steps, one every 10 ms. The vehicle sends a proposal 1 ms before each. Every
 * second proposal has a new command, sent `way` ms before, which cites the tick issued `uplink` ms
 * before that. By index, `late` returns how many ms a step is late, `isHeld` whether the guard
 * holds the machine, and `isMissing` whether the proposal is lost.
 */
function drive({ count = 200, uplink = 80, way = 20, late = () => 0, isHeld = () => false, isMissing = () => false }) {
  return Array.from({ length: count }, (_, index) => {
    const at = 10_000 + 10 * index + late(index);
    const source = at - 1 - late(index) - BEHIND_MS;
    const number = 100 + Math.floor(index / 2);
    const sentAt = 10_000 + 20 * Math.floor(index / 2) - 1 - way;
    const cited = 1 + Math.round((sentAt - uplink - 10_000) / 10);
    return {
      tick: index + 1, now_ns: at * 1e6, mode: isHeld(index) ? 'Held' : 'Driving',
      machine: { measured_ns: (at - 2) * 1e6 },
      demand: { command: { sequence: number, cited: cited > 0 ? cited : null, age_ms: source + BEHIND_MS - sentAt } },
      frames: {
        proposal: isMissing(index) ? null : '0'.repeat(24) + BigInt(Math.round(source * 1e6)).toString(16).padStart(16, '0'),
        machine: '',
      },
    };
  }).map((step) => (step.frames.proposal === null ? { ...step, demand: null } : step));
}

test('each delay is measured correctly', () => {
  const { found } = measured(drive({ uplink: 79, way: 20 }));
  const middle = (name) => quantile(found[name], 0.5);
  // The delay of the fastest proposal, 1 ms here, counts as clock difference.
  assert.deepEqual([middle('uplink'), middle('downlink')].map(Math.round), [80, 20]);
  assert.deepEqual(found.page_pause.map(Math.round), [20, 20]);
  for (const name of ['vehicle_late', 'machine_late', 'guard_late']) {
    assert.ok(Math.max(...found[name]) < 0.01, `${name}: ${Math.max(...found[name])}`);
  }
});

test('a late guard and a pausing vehicle are distinguished', () => {
  const { found: late } = measured(drive({ late: (index) => (index === 50 ? 7 : 0) }));
  assert.equal(Math.round(quantile(late.guard_late, 1)), 7);
  assert.ok(quantile(late.vehicle_late, 1) < 0.01);
  const { found: pauses } = measured(drive({ isMissing: (index) => [80, 81, 82].includes(index) }));
  assert.equal(Math.round(quantile(pauses.vehicle_late, 1)), 30);
  assert.ok(quantile(pauses.guard_late, 1) < 0.01);
});

test('nothing is measured while nobody may drive, or across that', () => {
  const held = measured(drive({ isHeld: () => true }));
  assert.deepEqual([...Object.values(held.found), ...held.stints].flat(), []);
  const { found, stints } = measured(drive({ isHeld: (index) => index >= 50 && index < 150, late: (index) => (index >= 100 ? 300 : 0) }));
  assert.ok(Math.max(...found.guard_late, ...found.vehicle_late) < 0.01);
  assert.equal(stints.length, 2);
  assert.deepEqual(stints[0].at(-1), [20, 20, 80]);
});

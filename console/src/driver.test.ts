import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Driver } from './driver';
import type { GuardView } from './guard';
import { Gear } from './message/gear';

let driver: Driver;

beforeEach(() => {
  vi.stubGlobal('window', new EventTarget());
  vi.stubGlobal('navigator', { getGamepads: () => [] });
  const storage = { getItem: () => null, setItem: () => {}, removeItem: () => {} } as unknown as Storage;
  driver = new Driver(7n, 0.5, storage, { urgent: () => {}, stopAsked: () => {}, help: () => {} });
});
afterEach(() => vi.unstubAllGlobals());

function guard(told: Partial<GuardView>): GuardView {
  return { mode: 'held', latched: false, blockers: [], report: null, emergencyStop: 0, ...told } as GuardView;
}

const command = () => driver.command(0, true, 0.02);

describe('an emergency stop', () => {
  it('is acknowledged by the guard alone: one that says nothing leaves it asked for, and nothing releases it', () => {
    driver.stop(0);
    const { emergencyStopNumber } = command();
    driver.observe({ guard: null }, 60_000);
    driver.press('arm');
    expect(driver.view(60_000)).toMatchObject({ stopAsked: true, stopUnacknowledgedMs: 60_000, pending: null });
    expect(command()).toMatchObject({ emergencyStopNumber, emergencyStop: true, throttle: 0, brake: 1, act: null });
    driver.observe({ guard: guard({ emergencyStop: emergencyStopNumber }) }, 60_010);
    expect(driver.view(60_010)).toMatchObject({ stopAsked: false, stopUnacknowledgedMs: null });
    expect(command()).toMatchObject({ emergencyStopNumber: 0, emergencyStop: false });
  });

  it('is not acknowledged by a guard that has not taken it', () => {
    driver.stop(0);
    const { emergencyStopNumber } = command();
    driver.observe({ guard: guard({ mode: 'manoeuvre', emergencyStop: emergencyStopNumber - 1 }) }, 100);
    expect(command()).toMatchObject({ emergencyStopNumber, emergencyStop: true });
  });
});

describe('Enter', () => {
  it('asks a guard that speaks, and nobody else', () => {
    driver.observe({ guard: null }, 0);
    driver.press('arm');
    expect(command().act).toBeNull();
    driver.observe({ guard: guard({}) }, 10);
    driver.press('arm');
    expect(command().act).toEqual({ number: 1, deed: { kind: 'arm' } });
  });
});

describe('reverse', () => {
  it('stays out while the speed is not known, and goes in at standstill', () => {
    const gears = [null, 0].map((speedMps) => {
      driver.command(speedMps, true, 0.02);
      driver.press('reverse');
      return driver.seat.gear;
    });
    expect(gears).toEqual([Gear.Drive, Gear.Reverse]);
  });
});

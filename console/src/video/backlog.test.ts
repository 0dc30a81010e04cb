import { expect, it } from 'vitest';
import { Backlog } from './backlog';

it('is none where slices come at once', () => {
  const backlog = new Backlog(130, 200);
  for (let nowMs = 0; nowMs < 2_000; nowMs += 17) expect(backlog.isStale(130, nowMs)).toBe(false);
});

it('is none after a standstill of the page that is made up for', () => {
  const backlog = new Backlog(130, 200);
  for (let nowMs = 0; nowMs < 190; nowMs += 10) expect(backlog.isStale(1_000 - 5 * nowMs, nowMs)).toBe(false);
  expect(backlog.isStale(20, 190)).toBe(false);
  expect(backlog.isStale(1_000, 300)).toBe(false);
});

it('is stale once catching up has failed, until a slice comes at once again', () => {
  const backlog = new Backlog(130, 200);
  expect([0, 100, 199].map((nowMs) => backlog.isStale(150, nowMs))).toEqual([false, false, false]);
  expect([200, 400].map((nowMs) => backlog.isStale(150, nowMs))).toEqual([true, true]);
  expect(backlog.isStale(130, 410)).toBe(false);
  expect(backlog.isStale(150, 420)).toBe(false);
});

it('is forgotten with the connection', () => {
  const backlog = new Backlog(130, 200);
  backlog.isStale(500, 0);
  backlog.clear();
  expect(backlog.isStale(500, 300)).toBe(false);
});

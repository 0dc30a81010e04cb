import { describe, expect, it } from 'vitest';
import { Acts, UNACKNOWLEDGED_MS } from './acts';
import type { ActReport } from './guard';

const HERE = 77n;

function answer(number: number, outcome: ActReport['outcome'] = 'done', console = HERE) {
  return { mode: 'armed' as const, emergencyStop: 0, report: { console, number, outcome } };
}

describe('an action', () => {
  it('repeats until the guard reports it as done', () => {
    const acts = new Acts(HERE, 0);
    acts.begin({ kind: 'arm' }, 0);
    for (const nowMs of [0, 20, 500]) expect(acts.act(nowMs)).toEqual({ number: 1, deed: { kind: 'arm' } });
    acts.observe(answer(1), 510);
    expect(acts.act(520)).toBeNull();
    expect(acts.view(520)).toEqual({ pending: null, last: { kind: 'arm', outcome: 'done' }, request: null, steeringShown: false, stopUnacknowledgedMs: null });
  });

  it('is not repeated after a refusal, and shows why', () => {
    const acts = new Acts(HERE, 0);
    acts.begin({ kind: 'arm' }, 0);
    acts.observe(answer(1, 'throttle pressed'), 30);
    expect(acts.act(40)).toBeNull();
    expect(acts.view(40).last).toEqual({ kind: 'arm', outcome: 'throttle pressed' });
    expect(acts.view(4_030).last).toBeNull();
  });

  it('ignores the guard\'s answers to other actions or consoles', () => {
    const acts = new Acts(HERE, 0);
    acts.begin({ kind: 'park' }, 0);
    acts.begin({ kind: 'arm' }, 10);
    acts.observe(answer(1), 20);
    acts.observe(answer(2, 'done', 78n), 20);
    acts.observe({ mode: 'held', emergencyStop: 0, report: null }, 20);
    expect(acts.act(30)).toEqual({ number: 2, deed: { kind: 'arm' } });
  });

  it('asks what was seen after turning the wheels, while armed', () => {
    const acts = new Acts(HERE, 0);
    const shown = () => acts.view(0).steeringShown;
    acts.begin({ kind: 'check steering' }, 0);
    acts.observe(answer(1, 'moving'), 10);
    expect(shown()).toBe(false);
    acts.begin({ kind: 'check steering' }, 20);
    acts.observe(answer(2), 30);
    expect(shown()).toBe(true);
    acts.begin({ kind: 'steering agrees' }, 40);
    acts.observe(answer(3), 50);
    expect(shown()).toBe(false);
    acts.begin({ kind: 'check steering' }, 60);
    acts.observe(answer(4), 70);
    acts.observe({ mode: 'driving', emergencyStop: 0, report: null }, 80);
    expect(shown()).toBe(false);
  });

  it('expires without an answer, so that nothing arms late', () => {
    const acts = new Acts(HERE, 0);
    acts.begin({ kind: 'arm' }, 0);
    expect(acts.act(1_999)).not.toBeNull();
    expect(acts.act(2_000)).toBeNull();
    expect(acts.view(2_000).last).toEqual({ kind: 'arm', outcome: 'unanswered' });
  });

  it('is withdrawn when the person leaves or asks for a stop', () => {
    const acts = new Acts(HERE, 0);
    acts.begin({ kind: 'arm' }, 0);
    acts.withdraw();
    expect(acts.act(10)).toBeNull();
    acts.begin({ kind: 'arm' }, 20);
    acts.stop(30);
    expect(acts.act(40)).toBeNull();
  });

  it('names the stop that it resets', () => {
    const acts = new Acts(HERE, 0);
    acts.begin({ kind: 'reset', stop: 9 }, 0);
    expect(acts.act(0)?.deed).toEqual({ kind: 'reset', stop: 9 });
  });
});

describe('an emergency stop', () => {
  it('repeats until the guard has acted on that number, however long that takes', () => {
    const acts = new Acts(HERE, 0.5);
    acts.stop(0);
    const number = acts.emergencyStop!;
    acts.observe({ mode: 'held', emergencyStop: number - 1, report: null }, 100);
    expect(acts.view(60_000).stopUnacknowledgedMs).toBe(60_000);
    expect(acts.emergencyStop).toBe(number);
    acts.observe({ mode: 'held', emergencyStop: number, report: null }, 60_010);
    expect([acts.emergencyStop, acts.view(60_020).stopUnacknowledgedMs]).toEqual([null, null]);
  });

  it('keeps its number if pressed again before the answer, and then takes a new one', () => {
    const acts = new Acts(HERE, 0.5);
    acts.stop(0);
    const first = acts.emergencyStop!;
    acts.stop(100);
    expect([acts.emergencyStop, acts.view(150).stopUnacknowledgedMs]).toEqual([first, 150]);
    acts.observe({ mode: 'held', emergencyStop: first, report: null }, 200);
    acts.stop(300);
    expect(acts.emergencyStop).toBe(first + 1);
  });

  it('has a number that no earlier page used, and never 0', () => {
    for (const random of [0, 0.25, 1 - 2 ** -53]) {
      const acts = new Acts(HERE, random);
      for (let press = 0; press < 3; press += 1) {
        acts.stop(press);
        const number = acts.emergencyStop!;
        expect(number >= 1 && number < 2 ** 32).toBe(true);
        acts.observe({ mode: 'held', emergencyStop: number, report: null }, press);
      }
    }
    const pages = [0.1, 0.2].map((random) => {
      const acts = new Acts(HERE, random);
      acts.stop(0);
      return acts.emergencyStop;
    });
    expect(pages[0]).not.toBe(pages[1]);
  });

  it('is reported as unacknowledged within 300 ms at ten updates a second', () => {
    expect(UNACKNOWLEDGED_MS + 100).toBeLessThanOrEqual(300);
  });
});

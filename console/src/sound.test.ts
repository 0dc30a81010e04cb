import { describe, expect, it } from 'vitest';
import { Cues, type Heard, SILENCE } from './sound';

const heard = (parts: Partial<Heard>): Heard => ({ ...SILENCE, mode: 'driving', ...parts });

describe('Cues', () => {
  it('announce a change of mode once', () => {
    const cues = new Cues();
    expect(cues.next(heard({ mode: 'held' }), 0)).toBeNull();
    expect(cues.next(heard({ mode: 'armed' }), 100)).toBe('armed');
    expect(cues.next(heard({ mode: 'armed' }), 200)).toBeNull();
    expect(cues.next(heard({}), 300)).toBeNull();
    expect(cues.next(heard({ mode: 'limited' }), 400)).toBe('limited');
    expect(cues.next(heard({ mode: 'limited' }), 500)).toBeNull();
  });

  it('repeat a stop until the machine is held', () => {
    const cues = new Cues();
    cues.next(heard({}), 0);
    const told = [100, 200, 1_000, 1_900].map((nowMs) => cues.next(heard({ mode: 'manoeuvre' }), nowMs));
    expect(told).toEqual(['stopping', null, 'stopping', 'stopping']);
    expect(cues.next(heard({ mode: 'held' }), 2_000)).toBe('held');
  });

  it('announce an unacknowledged stop before all else', () => {
    const cues = new Cues();
    const worst = heard({ mode: 'manoeuvre', stopUnacknowledged: true, late: true, countdown: true, refused: true });
    expect(cues.next(worst, 0)).toBe('unacknowledged');
    expect(cues.next(worst, 100)).toBe('stopping');
  });

  it('start at once when a state starts again', () => {
    const cues = new Cues();
    expect(cues.next(heard({ late: true }), 0)).toBe('late');
    expect(cues.next(heard({}), 100)).toBeNull();
    expect(cues.next(heard({ late: true }), 200)).toBe('late');
  });

  it('announce a refusal once', () => {
    const cues = new Cues();
    expect(cues.next(heard({ mode: 'held', refused: true }), 0)).toBe('refused');
    expect(cues.next(heard({ mode: 'held', refused: true }), 100)).toBeNull();
  });
});

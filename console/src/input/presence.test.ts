import { describe, expect, it } from 'vitest';
import { ABSENCES, DeadManInput, Presence } from './presence';

describe('Presence', () => {
  it('returns the worst absence, and each ends independently', () => {
    const presence = new Presence();
    expect(presence.worst).toBeNull();
    for (const absence of [...ABSENCES].reverse()) {
      presence.set(absence, true);
      expect(presence.worst).toBe(absence);
    }
    presence.set('hidden', false);
    expect(presence.worst).toBe('unfocused');
  });

  it('does not end by a press while the page is hidden, a device is calibrated or the dead-man input released', () => {
    const presence = new Presence();
    for (const absence of ABSENCES) presence.set(absence, true);
    presence.takeUp();
    expect(presence.worst).toBe('hidden');
    presence.set('hidden', false);
    expect(presence.worst).toBe('calibrating');
    presence.set('calibrating', false);
    expect(presence.worst).toBe('dead-man released');
  });

  it('reports a hidden page, a lost focus and unsound inputs to the guard separately', () => {
    const bits = (absence: (typeof ABSENCES)[number]): number => {
      const presence = new Presence();
      presence.set(absence, true);
      return presence.bits;
    };
    expect(ABSENCES.map(bits)).toEqual([2, 4, 8, 8, 8, 8, 8, 0]);
    expect(new Presence().bits).toBe(0);
  });
});

describe('DeadManInput', () => {
  const storeOf = (kept = new Map<string, string>()) => ({
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => { kept.set(key, value); },
  });

  it('is absent until it is wanted, held or required', () => {
    const input = new DeadManInput(storeOf());
    expect([input.read(false), input.read(true)]).toEqual(['absent', 'held']);
    input.require();
    expect([input.read(false), input.read(true)]).toEqual(['released', 'held']);
  });

  it('is remembered for the next time', () => {
    const store = storeOf();
    new DeadManInput(store).wanted = true;
    expect(new DeadManInput(store).read(false)).toBe('released');
  });

  it('works in a browser without storage', () => {
    const broken = () => { throw new Error('no storage'); };
    const input = new DeadManInput({ getItem: broken, setItem: broken });
    input.wanted = true;
    expect(input.read(false)).toBe('released');
  });
});

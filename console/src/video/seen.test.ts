import { describe, expect, it } from 'vitest';
import { Chain, Seen } from './seen';

const IDR = { kind: 'idr', history: 0, corrupt: false } as const;
const SKIP = { kind: 'skip', history: 0, corrupt: false } as const;
const after = (history: number | null, corrupt = false) => ({ kind: 'predicted', history, corrupt }) as const;

function chain(...slices: Parameters<Chain['take']>[0][]): boolean[] {
  const strip = new Chain();
  return slices.map((slice) => strip.take(slice));
}

describe('a strip\'s chain of prediction', () => {
  it('is clean from an IDR on, not before', () => {
    expect(chain(after(3), after(0), IDR, after(null), after(254))).toEqual([false, true, true, true, true]);
    expect(chain(after(null), after(254), IDR)).toEqual([false, false, true]);
  });

  it('is broken by a skip slice until an IDR', () => {
    expect(chain(IDR, SKIP, after(null), after(254), IDR)).toEqual([true, false, false, false, true]);
  });

  it('is clean again once a slice\'s whole history has arrived since the loss', () => {
    expect(chain(IDR, after(1), SKIP, after(1), after(2), after(2))).toEqual([true, true, false, false, false, true]);
    expect(chain(IDR, SKIP, after(0))).toEqual([true, false, true]);
  });

  it('is not clean if a skip slice repeats a clean picture', () => expect(chain(IDR, SKIP)).toEqual([true, false]));

  it('is never better than the operator\'s process reports', () => {
    expect(chain(IDR, after(0, true), after(null), IDR)).toEqual([true, false, false, true]);
  });

  it('starts again with its decoder', () => {
    const strip = new Chain();
    strip.take(IDR);
    strip.break();
    expect(strip.take(after(null))).toBe(false);
  });
});

const shown = (picture: number) => ({ picture, tick: picture * 10, capturedAtUs: picture * 1_000 });

function arranged(strips: number): Seen {
  const seen = new Seen();
  seen.arrange(strips);
  return seen;
}

describe('the newest picture seen', () => {
  it('is null until every strip was drawn and a frame followed', () => {
    const seen = arranged(2);
    seen.draw(0, shown(1));
    seen.frame(true);
    expect(seen.newest()).toBeNull();
    seen.draw(1, shown(1));
    expect(seen.newest()).toBeNull();
    seen.frame(true);
    expect(seen.newest()).toEqual(shown(1));
  });

  it('is as old as the oldest strip: one frozen strip of six ages the whole', () => {
    const seen = arranged(6);
    for (let strip = 0; strip < 6; strip += 1) seen.draw(strip, shown(1));
    for (const picture of [2, 3, 4]) {
      for (let strip = 0; strip < 6; strip += 1) if (strip !== 3) seen.draw(strip, shown(picture));
      seen.frame(true);
    }
    expect(seen.newest()).toEqual(shown(1));
    seen.draw(3, shown(5));
    seen.frame(true);
    expect(seen.newest()).toEqual(shown(4));
  });

  it('does not advance on a hidden page, only with the first frame after', () => {
    const seen = arranged(1);
    seen.draw(0, shown(1));
    seen.frame(true);
    seen.draw(0, shown(2));
    seen.frame(false);
    expect(seen.newest()).toEqual(shown(1));
    seen.frame(true);
    expect(seen.newest()).toEqual(shown(2));
  });

  it('excludes those that the canvas lost between drawing and frame', () => {
    const seen = arranged(2);
    for (const strip of [0, 1]) seen.draw(strip, shown(1));
    seen.frame(true);
    for (const strip of [0, 1]) seen.draw(strip, shown(2));
    seen.lose();
    seen.frame(true);
    expect(seen.newest()).toEqual(shown(1));
  });

  it('compares across the wrap of the picture\'s number', () => {
    const seen = arranged(2);
    seen.draw(0, shown(2 ** 32 - 1));
    seen.draw(1, shown(0));
    seen.frame(true);
    expect(seen.newest()?.picture).toBe(2 ** 32 - 1);
  });

  it('starts again when the camera\'s counter does', () => {
    const seen = arranged(2);
    seen.draw(0, shown(500));
    seen.draw(1, shown(500));
    seen.frame(true);
    seen.draw(0, shown(3));
    expect(seen.newest()).toBeNull();
    seen.draw(1, shown(3));
    seen.frame(true);
    expect(seen.newest()).toEqual(shown(3));
  });

  it('ignores a strip that the picture does not have', () => {
    const seen = arranged(1);
    seen.draw(7, shown(1));
    seen.frame(true);
    expect(seen.newest()).toBeNull();
  });
});

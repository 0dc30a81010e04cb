import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Screen } from './screen';

/**
 * Canvas of a browser. If `isLost` is null, the browser cannot report whether the canvas is lost.
 */
class FakeCanvas {
  static isLost: boolean | null = false;

  getContext(): unknown {
    return FakeCanvas.isLost === null ? {} : { isContextLost: () => FakeCanvas.isLost };
  }
}

beforeEach(() => vi.stubGlobal('OffscreenCanvas', FakeCanvas));
afterEach(() => vi.unstubAllGlobals());

function screenOf(isLost: boolean | null): Screen {
  FakeCanvas.isLost = isLost;
  return new Screen(new FakeCanvas() as unknown as OffscreenCanvas);
}

describe('a screen', () => {
  it('is lost with its canvas and returns with it', () => {
    const screen = screenOf(false);
    for (const isLost of [false, true, false]) {
      FakeCanvas.isLost = isLost;
      expect(screen.isLost).toBe(isLost);
    }
  });

  it('counts as usable if the browser cannot report a loss', () => expect(screenOf(null).isLost).toBe(false));
});

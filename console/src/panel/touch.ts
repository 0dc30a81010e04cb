import type { Motion } from '../generated/kinds';
import type { SpeedMode } from '../input/set-point';
import { type Side, TRAVEL_PX, type Touch } from '../input/touch';
import { byId, setData, setText } from './element';

/** Function of each thumb, by the kind of the machine. */
const WORDS: Readonly<Record<Motion, Readonly<Record<Side, string>>>> = {
  ackermann: { left: 'throttle, brake', right: 'steering' },
  differential: { left: 'speed', right: 'turn' },
  omni: { left: 'move', right: 'turn' },
};
/** Directions that count of each thumb. */
const WAYS: Readonly<Record<Motion, Readonly<Record<Side, string>>>> = {
  ackermann: { left: 'vertical', right: 'horizontal' },
  differential: { left: 'vertical', right: 'horizontal' },
  omni: { left: 'all', right: 'horizontal' },
};

/** The two touch controls over the picture, shown on a touch screen. */
export class TouchPanel {
  readonly #stage = byId('stage');
  readonly #brake = byId<HTMLButtonElement>('touch-brake');
  readonly #sides = (['left', 'right'] as const).map((side) => ({
    side, area: byId(`touch-${side}`), words: byId(`touch-${side}-words`), base: byId(`touch-${side}-base`), knob: byId(`touch-${side}-knob`),
  }));
  #wanted = matchMedia('(pointer: coarse)').matches;

  /** `brake` ends the held speed. */
  constructor(readonly touch: Touch, brake: () => void) {
    this.#brake.addEventListener('pointerdown', brake);
    window.addEventListener('pointerdown', (event) => { this.#wanted ||= event.pointerType === 'touch'; }, { capture: true });
  }

  /**
   * Shows the controls if the person uses touch and `drives`: a guard reports and this console
   * drives. Otherwise hides and releases them.
   */
  show(motion: Motion, speedMode: SpeedMode, drives: boolean): void {
    const isShown = this.#wanted && drives;
    setData(this.#stage, 'touch', String(isShown));
    if (!isShown) {
      this.touch.releaseAll();
      return;
    }
    this.#brake.hidden = motion === 'ackermann' || speedMode !== 'set point';
    for (const { side, area, words } of this.#sides) {
      setData(area, 'way', WAYS[motion][side]);
      setText(words, side === 'left' && !this.#brake.hidden ? 'faster, slower' : WORDS[motion][side]);
    }
  }

  /** Draws the thumbs; call it for each animation frame. */
  draw(): void {
    for (const { side, area, base, knob } of this.#sides) {
      const thumb = this.touch.thumb(side);
      setData(area, 'held', String(thumb !== null));
      if (thumb === null) {
        base.style.translate = '';
        knob.style.translate = '';
        continue;
      }
      const { left, top, width, height } = area.getBoundingClientRect();
      base.style.translate = `${thumb.origin.x - left - width / 2}px ${thumb.origin.y - top - height / 2}px`;
      const way = area.dataset['way'];
      knob.style.translate = `${way === 'vertical' ? 0 : thumb.x * TRAVEL_PX}px ${way === 'horizontal' ? 0 : -thumb.y * TRAVEL_PX}px`;
    }
  }
}

import type { Motion } from '../generated/kinds';
import { type Position, REST } from './ramp';

/** Thumb of a touch control. */
export type Side = 'left' | 'right';

/** Place where a thumb touched first, and the distance from there, in shares of the travel. */
export interface Thumb {
  /** Place of the first touch in CSS pixels of the window. */
  origin: { x: number; y: number };
  /** -1 left to 1 right. */
  x: number;
  /** -1 down to 1 up. */
  y: number;
}

/** Part of the DOM's pointer events that is read. */
type Touched = Pick<PointerEvent, 'pointerId' | 'clientX' | 'clientY' | 'button'> & { preventDefault(): void };

/** Area that a thumb may touch. */
export type Area = Pick<HTMLElement, 'addEventListener' | 'setPointerCapture'>;

/** Travel of a thumb from the first touch to the end, in CSS pixels: about 1 cm on a phone. */
export const TRAVEL_PX = 64;
/** Share of the travel that counts as 0: a thumb that rests rolls by less. */
const DEAD_ZONE = 0.12;

/**
 * Two touch controls. Each begins at 0 where its thumb touches, and is released when the thumb is
 * lifted, when the browser takes the touch away, or with `releaseAll`.
 */
export class Touch {
  readonly #thumbs = new Map<Side, { pointer: number } & Thumb>();

  constructor(areas: Readonly<Record<Side, Area>>) {
    for (const side of ['left', 'right'] as const) {
      const area = areas[side];
      area.addEventListener('pointerdown', (event) => this.#begin(side, area, event as PointerEvent));
      area.addEventListener('pointermove', (event) => this.#move(side, event as PointerEvent));
      for (const end of ['pointerup', 'pointercancel', 'lostpointercapture'] as const) {
        area.addEventListener(end, (event) => this.#end(side, event as PointerEvent));
      }
      // A long touch would open a menu.
      area.addEventListener('contextmenu', (event) => event.preventDefault());
    }
  }

  /** True while a thumb touches. */
  get isHeld(): boolean {
    return this.#thumbs.size > 0;
  }

  /** Returns the thumb on this side; `null` if it does not touch. */
  thumb(side: Side): Thumb | null {
    return this.#thumbs.get(side) ?? null;
  }

  /** Releases both controls. A thumb that still touches must be lifted first. */
  releaseAll(): void {
    this.#thumbs.clear();
  }

  /** Returns what the thumbs ask of this kind of machine; `null` if none touches. */
  position(motion: Motion): Position | null {
    if (!this.isHeld) return null;
    const left = this.#shares('left');
    const steering = opposite(this.#shares('right').x);
    switch (motion) {
      case 'ackermann':
        return { ...REST, steering, throttle: Math.max(0, left.y), brake: Math.max(0, opposite(left.y)) };
      case 'differential':
        return { ...REST, steering, speed: left.y };
      case 'omni':
        return { ...REST, steering, speed: left.y, sideways: opposite(left.x) };
    }
  }

  #shares(side: Side): { x: number; y: number } {
    const thumb = this.#thumbs.get(side);
    return thumb === undefined ? { x: 0, y: 0 } : { x: beyond(thumb.x), y: beyond(thumb.y) };
  }

  #begin(side: Side, area: Area, event: Touched): void {
    if (event.button !== 0) return;
    event.preventDefault();
    if (this.#thumbs.has(side)) return;
    area.setPointerCapture(event.pointerId);
    this.#thumbs.set(side, { pointer: event.pointerId, origin: { x: event.clientX, y: event.clientY }, x: 0, y: 0 });
  }

  #move(side: Side, event: Touched): void {
    const thumb = this.#thumbs.get(side);
    if (thumb?.pointer !== event.pointerId) return;
    const [x, y] = [(event.clientX - thumb.origin.x) / TRAVEL_PX, (thumb.origin.y - event.clientY) / TRAVEL_PX];
    thumb.x = Math.min(1, Math.max(-1, x));
    thumb.y = Math.min(1, Math.max(-1, y));
  }

  #end(side: Side, event: Touched): void {
    if (this.#thumbs.get(side)?.pointer === event.pointerId) this.#thumbs.delete(side);
  }
}

/** Returns the share beyond the dead zone, from 0 at its edge. */
function beyond(share: number): number {
  const size = Math.max(0, Math.abs(share) - DEAD_ZONE) / (1 - DEAD_ZONE);
  return share < 0 ? opposite(size) : size;
}

/** Returns the opposite, without a minus sign before 0. */
function opposite(share: number): number {
  return share === 0 ? 0 : -share;
}

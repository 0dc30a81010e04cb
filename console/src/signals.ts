import type { Press } from './input/keyboard';
import type { Signal } from './guard';

/** Horn, lights and indicators as the person wants them: what the commands ask for. */
export class Signals {
  readonly #on = new Set<Signal>();
  #horn = false;

  /** Returns whether the press was a signal's. */
  press(press: Press): boolean {
    switch (press) {
      case 'lights': case 'hazard':
        this.toggle(press);
        return true;
      case 'high-beam':
        this.toggle('high beam');
        return true;
      case 'left': case 'right':
        this.toggle(press);
        return true;
      default:
        return false;
    }
  }

  /** One indicator ends the other; the horn sounds only while it is held. */
  toggle(signal: Exclude<Signal, 'horn'>): void {
    if (this.#on.delete(signal)) return;
    if (signal === 'left') this.#on.delete('right');
    if (signal === 'right') this.#on.delete('left');
    this.#on.add(signal);
  }

  set horn(held: boolean) {
    this.#horn = held;
  }

  list(): Signal[] {
    return this.#horn ? ['horn', ...this.#on] : [...this.#on];
  }
}

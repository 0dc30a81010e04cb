import type { Press } from './input/keyboard';
import type { Signal } from './generated/kinds';

/** Horn, lights and indicators that the operator wants, sent with each command. */
export class Signals {
  readonly #on = new Set<Signal>();
  #horn = false;

  /** Handles a press. Returns false if no signal belongs to it. */
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

  /** Switches a signal on, or off if it is on. One indicator ends the other. */
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

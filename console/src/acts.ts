import type { Blocker, GuardView } from './guard';

/** What a person asks of the guard, deliberately. A reset names the stop that the person was shown. */
export type Deed =
  | { kind: 'arm' } | { kind: 'reset'; stop: number } | { kind: 'park' } | { kind: 'take over' }
  | { kind: 'check steering' } | { kind: 'steering agrees' } | { kind: 'steering wrong' } | { kind: 'steering unseen' };

export interface Act {
  /** Counts up with each act of this page; never 0. */
  number: number;
  deed: Deed;
}

export type Outcome = 'done' | 'unanswered' | Blocker;

export interface ActsView {
  /** Asked for and not answered yet. */
  pending: Deed['kind'] | null;
  /** What became of the last one, for as long as that is news. */
  last: { kind: Deed['kind']; outcome: Outcome } | null;
  /** The wheels were turned for this person to look at, who has not said yet what was seen. */
  steeringShown: boolean;
  /** For how long an emergency stop has been asked for that nobody has acknowledged; null: there is none. */
  stopUnacknowledgedMs: number | null;
}

/** So long an act is repeated: an arming must not come true when the person has turned to other things. */
const REPEAT_MS = 2_000;
const NEWS_MS = 4_000;
/** An emergency stop without an answer is told from here on, and at the page's next look, within 300 ms at the latest. */
export const UNACKNOWLEDGED_MS = 200;

/**
 * The acts of this page: each goes with every command until the guard names it as done or refused.
 *
 * One at a time: a newer one takes the place of the one before. An emergency stop stands beside them, is never given
 * up, and its numbers begin anywhere, so that those of a page before a reload are not taken for it.
 */
export class Acts {
  #count = 0;
  #pending: { act: Act; sinceMs: number } | null = null;
  #last: { kind: Deed['kind']; outcome: Outcome; atMs: number } | null = null;
  #stopNumber: number;
  #steeringShown = false;
  #stopSinceMs: number | null = null;

  /** `console`: this page's own number; `random`: in [0, 1). */
  constructor(readonly console: bigint, random: number) {
    this.#stopNumber = 1 + Math.floor(random * (STOP_NUMBERS - 1));
  }

  begin(deed: Deed, nowMs: number): void {
    this.#count += 1;
    this.#pending = { act: { number: this.#count, deed }, sinceMs: nowMs };
    this.#last = null;
  }

  /** Pressed again before an answer, it stays the same one: it counts from the first press. */
  stop(nowMs: number): void {
    this.#pending = null;
    if (this.#stopSinceMs !== null) return;
    this.#stopNumber = (this.#stopNumber % (STOP_NUMBERS - 1)) + 1;
    this.#stopSinceMs = nowMs;
  }

  /** Nothing but a stop is asked for any more: the person has gone. */
  withdraw(): void {
    this.#pending = null;
  }

  /** Nothing is asked for any more, and nothing of it is news: the vehicle was let go of. */
  forget(): void {
    this.#pending = null;
    this.#last = null;
    this.#stopSinceMs = null;
    this.#steeringShown = false;
  }

  observe(guard: Pick<GuardView, 'mode' | 'report' | 'emergencyStop'>, nowMs: number): void {
    if (guard.mode !== 'armed') this.#steeringShown = false;
    if (guard.emergencyStop === this.#stopNumber) this.#stopSinceMs = null;
    const { report } = guard;
    const act = this.#pending?.act;
    if (act === undefined || report === null) return;
    if (report.console === this.console && report.number === act.number) this.#end(report.outcome, nowMs);
  }

  /** The act to send with the next command. */
  act(nowMs: number): Act | null {
    if (this.#pending !== null && nowMs - this.#pending.sinceMs >= REPEAT_MS) this.#end('unanswered', nowMs);
    return this.#pending?.act ?? null;
  }

  /** The number of the emergency stop to send with the next command; null: none. */
  get emergencyStop(): number | null {
    return this.#stopSinceMs === null ? null : this.#stopNumber;
  }

  view(nowMs: number): ActsView {
    const last = this.#last !== null && nowMs - this.#last.atMs < NEWS_MS ? this.#last : null;
    return {
      pending: this.#pending?.act.deed.kind ?? null,
      steeringShown: this.#steeringShown,
      last: last === null ? null : { kind: last.kind, outcome: last.outcome },
      stopUnacknowledgedMs: this.#stopSinceMs === null ? null : nowMs - this.#stopSinceMs,
    };
  }

  #end(outcome: Outcome, nowMs: number): void {
    if (this.#pending === null) return;
    const { kind } = this.#pending.act.deed;
    if (outcome === 'done') this.#steeringShown = kind === 'check steering';
    this.#last = { kind, outcome, atMs: nowMs };
    this.#pending = null;
  }
}

/** As many as an unsigned number of 32 bits has; 0 is none. */
const STOP_NUMBERS = 2 ** 32;

import type { Blocker } from './generated/kinds';
import type { GuardView } from './guard';

/** Action that a person asks of the guard deliberately. A reset names the stop that was shown. */
export type Deed =
  | { kind: 'arm' } | { kind: 'reset'; stop: number } | { kind: 'park' } | { kind: 'take over' }
  | { kind: 'check steering' } | { kind: 'steering agrees' } | { kind: 'steering wrong' } | { kind: 'steering unseen' };

export interface Act {
  /** Counts up with each action of this page; never 0. */
  number: number;
  deed: Deed;
}

export type Outcome = 'done' | 'unanswered' | Blocker;

export interface ActsView {
  /** Action without an answer yet. */
  pending: Deed['kind'] | null;
  /** Outcome of the last action, shown for 4 s. */
  last: { kind: Deed['kind']; outcome: Outcome } | null;
  /**
   * Set after the wheels were turned for the steering check, until the operator reports what was
   * seen.
   */
  steeringShown: boolean;
  /**
   * Time since an emergency stop was requested that is not acknowledged yet; `null` if there is
   * none.
   */
  stopUnacknowledgedMs: number | null;
}

/**
 * Time for which an action is repeated. The machine must not arm after the operator has turned
 * away.
 */
const REPEAT_MS = 2_000;
const NEWS_MS = 4_000;
/**
 * Time without an answer after which an emergency stop is shown as unacknowledged. The page's next
 * update shows it within 300 ms in total.
 */
export const UNACKNOWLEDGED_MS = 200;

/**
 * The actions of this page. Each goes with every command until the guard reports it as done or
 * refused.
 *
 * There is one at a time: a new action replaces the pending one. An emergency stop is separate and
 * never given up. Its numbers start at a random value, so that the guard does not confuse them with
 * those from before a reload.
 */
export class Acts {
  #count = 0;
  #pending: { act: Act; sinceMs: number } | null = null;
  #last: { kind: Deed['kind']; outcome: Outcome; atMs: number } | null = null;
  #stopNumber: number;
  #steeringShown = false;
  #stopSinceMs: number | null = null;

  /** `console` is this page's number; `random` is in [0, 1). */
  constructor(readonly console: bigint, random: number) {
    this.#stopNumber = 1 + Math.floor(random * (STOP_NUMBERS - 1));
  }

  begin(deed: Deed, nowMs: number): void {
    this.#count += 1;
    this.#pending = { act: { number: this.#count, deed }, sinceMs: nowMs };
    this.#last = null;
  }

  /** Requests an emergency stop. Repeated before an answer, it keeps its number and its time. */
  stop(nowMs: number): void {
    this.#pending = null;
    if (this.#stopSinceMs !== null) return;
    this.#stopNumber = (this.#stopNumber % (STOP_NUMBERS - 1)) + 1;
    this.#stopSinceMs = nowMs;
  }

  /** Drops the pending action when the operator is absent; an emergency stop remains. */
  withdraw(): void {
    this.#pending = null;
  }

  /** Drops every request and outcome when the vehicle is released. */
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

  /** Returns the action to send with the next command. */
  act(nowMs: number): Act | null {
    if (this.#pending !== null && nowMs - this.#pending.sinceMs >= REPEAT_MS) this.#end('unanswered', nowMs);
    return this.#pending?.act ?? null;
  }

  /** Number of the emergency stop to send with the next command; `null` if none. */
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

/** Count of unsigned 32-bit numbers; 0 means none. */
const STOP_NUMBERS = 2 ** 32;

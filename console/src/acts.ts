import type { Blocker } from './generated/kinds';
import type { GuardView } from './guard';

/**
 * Action, other than an emergency stop, that the operator requests from the guard. `stop` is the
 * number of the stop to reset, as the page showed it.
 */
export type Deed =
  | { kind: 'arm' } | { kind: 'reset'; stop: number } | { kind: 'park' } | { kind: 'take over' }
  /** Request of a declared action, by its number. */
  | { kind: 'request'; action: number }
  | { kind: 'check steering' } | { kind: 'steering agrees' } | { kind: 'steering wrong' } | { kind: 'steering unseen' };

export interface Act {
  /** Number of the action on this page, from 1 up. */
  number: number;
  deed: Deed;
}

export type Outcome = 'done' | 'unanswered' | Blocker;

export interface ActsView {
  /** Action that the guard has not answered yet; `null` if there is none. */
  pending: Deed['kind'] | null;
  /**
   * Last action that ended and its outcome, for 4 s after its end; `null` otherwise, and once a new
   * action begins.
   */
  last: { kind: Deed['kind']; outcome: Outcome } | null;
  /**
   * Newest request of a declared action: its number, and its outcome, for 4 s after its end; `null`
   * if there is none.
   */
  request: { action: number; outcome: 'pending' | Outcome } | null;
  /**
   * True once the guard has turned the wheels for the steering check, until another action is done,
   * such as the operator's answer, or the vehicle is no longer armed.
   */
  steeringShown: boolean;
  /**
   * Time since the request of an emergency stop that the guard has not acknowledged yet; `null` if
   * there is none.
   */
  stopUnacknowledgedMs: number | null;
}

/**
 * Time for which commands repeat an action without an answer. After it, the action ends as
 * unanswered: the machine must not arm once the operator has turned away.
 */
const REPEAT_MS = 2_000;
/** Time for which the outcome of an action is shown. */
const NEWS_MS = 4_000;
/**
 * Time without an acknowledgement after which an emergency stop is shown as unacknowledged. The
 * page updates every 100 ms, so it shows this within 300 ms of the request.
 */
export const UNACKNOWLEDGED_MS = 200;

/**
 * The actions of this page. Each is sent with every command until the guard reports it as done or
 * refused, or `REPEAT_MS` have passed.
 *
 * At most one action is pending: a new one replaces it. An emergency stop is separate, and is
 * requested until the guard acknowledges it. The numbers of stops start at a random value, so that
 * the guard does not confuse them with those from before a reload.
 */
export class Acts {
  #count = 0;
  #pending: { act: Act; sinceMs: number } | null = null;
  #last: { deed: Deed; outcome: Outcome; atMs: number } | null = null;
  #stopNumber: number;
  #steeringShown = false;
  #stopSinceMs: number | null = null;

  /** `console` identifies this page; `random`, in [0, 1), selects the number of the first stop. */
  constructor(readonly console: bigint, random: number) {
    this.#stopNumber = 1 + Math.floor(random * (STOP_NUMBERS - 1));
  }

  begin(deed: Deed, nowMs: number): void {
    this.#count += 1;
    this.#pending = { act: { number: this.#count, deed }, sinceMs: nowMs };
    this.#last = null;
  }

  /**
   * Requests an emergency stop and drops the pending action. A stop that is requested again before
   * its acknowledgement keeps its number and its time.
   */
  stop(nowMs: number): void {
    this.#pending = null;
    if (this.#stopSinceMs !== null) return;
    this.#stopNumber = (this.#stopNumber % (STOP_NUMBERS - 1)) + 1;
    this.#stopSinceMs = nowMs;
  }

  /**
   * Drops the pending action, because the operator is absent. An emergency stop remains requested.
   */
  withdraw(): void {
    this.#pending = null;
  }

  /** Drops all requests and outcomes, because the vehicle was released. */
  forget(): void {
    this.#pending = null;
    this.#last = null;
    this.#stopSinceMs = null;
    this.#steeringShown = false;
  }

  /**
   * Handles a state of the guard: ends the action and the emergency stop that it answers. Unless
   * the guard is armed, the steering no longer counts as shown.
   */
  observe(guard: Pick<GuardView, 'mode' | 'report' | 'emergencyStop'>, nowMs: number): void {
    if (guard.mode !== 'armed') this.#steeringShown = false;
    if (guard.emergencyStop === this.#stopNumber) this.#stopSinceMs = null;
    const { report } = guard;
    const act = this.#pending?.act;
    if (act === undefined || report === null) return;
    if (report.console === this.console && report.number === act.number) this.#end(report.outcome, nowMs);
  }

  /**
   * Returns the action to send with the next command; `null` if there is none. One that was
   * repeated for `REPEAT_MS` ends here.
   */
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
      last: last === null ? null : { kind: last.deed.kind, outcome: last.outcome },
      request: requestOf(this.#pending?.act.deed, 'pending') ?? requestOf(last?.deed, last?.outcome ?? 'unanswered'),
      stopUnacknowledgedMs: this.#stopSinceMs === null ? null : nowMs - this.#stopSinceMs,
    };
  }

  #end(outcome: Outcome, nowMs: number): void {
    if (this.#pending === null) return;
    const { deed } = this.#pending.act;
    if (outcome === 'done') this.#steeringShown = deed.kind === 'check steering';
    this.#last = { deed, outcome, atMs: nowMs };
    this.#pending = null;
  }
}

function requestOf(deed: Deed | undefined, outcome: 'pending' | Outcome): ActsView['request'] {
  return deed?.kind === 'request' ? { action: deed.action, outcome } : null;
}

/** One more than the largest number of a stop. Numbers are unsigned 32-bit; 0 means no stop. */
const STOP_NUMBERS = 2 ** 32;

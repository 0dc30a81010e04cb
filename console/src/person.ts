import { Acts, type ActsView, type Deed } from './acts';
import { Gamepads } from './input/gamepad';
import { Keyboard, type Press } from './input/keyboard';
import { type DeadMan, DeadManInput, Presence } from './input/presence';
import { Seat } from './input/seat';
import { type GuardView, type Signal, bitsOf, SIGNALS } from './guard';
import type { TelemetryView } from './report';
import { Signals } from './signals';
import type { Demand } from './wire';

export interface PersonEvents {
  /** What cannot wait for the next tick. */
  urgent(): void;
  /** An emergency stop was asked for: whether it was heard is to be told soon. */
  stopAsked(): void;
  help(): void;
}

/** A pad that was silent for so long is told of, before it counts as frozen. */
const STILL_TOLD_MS = 1_000;

/** The person who drives: devices, presence and acts, and what they make of each tick. */
export class Person {
  readonly seat = new Seat();
  readonly presence = new Presence();
  readonly deadMan: DeadManInput;
  readonly signals = new Signals();
  readonly pads: Gamepads;
  readonly #keyboard: Keyboard;
  readonly #acts: Acts;
  #guard: GuardView | null = null;
  #padFrozen = false;
  #stillMs = 0;
  #held: DeadMan = 'absent';
  #speedMps: number | null = null;
  /** The page's own button of it. */
  hornPressed = false;
  /** Another console drives and has agreed that this one takes over. */
  succeeds = false;
  /** False: a vehicle is to be picked first, or this page only watches; then nothing is asked of any. */
  mayAct = true;

  /** `console`: this page's own number; `random`: in [0, 1). */
  constructor(console: bigint, random: number, storage: Storage, readonly events: PersonEvents) {
    this.#acts = new Acts(console, random);
    this.deadMan = new DeadManInput(storage);
    this.pads = new Gamepads({
      emergencyStop: () => this.stop(performance.now()),
      toggleReverse: () => this.press('reverse'),
      gone: () => this.leave('pad gone'), // Found while a command is being made.
    }, storage);
    this.#keyboard = new Keyboard(window, {
      press: (press) => this.press(press),
      touched: () => this.presence.takeUp(),
      metaKey: () => {
        this.leave('meta key');
        this.events.urgent();
      },
    });
  }

  /** What the person is told of it. */
  view(nowMs: number): ActsView & { stopAsked: boolean; deadMan: DeadMan; padStill: boolean } {
    const padStill = this.#stillMs >= STILL_TOLD_MS;
    return { ...this.#acts.view(nowMs), stopAsked: this.seat.emergencyStopped, deadMan: this.#held, padStill };
  }

  press(press: Press): void {
    if (!this.mayAct && press !== 'help') return;
    const nowMs = performance.now();
    switch (press) {
      case 'emergency-stop':
        this.stop(nowMs);
        return;
      case 'arm':
        if (this.succeeds) this.#begin({ kind: 'take over' }, nowMs);
        else this.#begin({ kind: 'arm' }, nowMs);
        return;
      case 'reset':
        if (this.#guard?.latched === true) this.#begin({ kind: 'reset', stop: this.#guard.stop }, nowMs);
        return;
      case 'park':
        this.#begin({ kind: 'park' }, nowMs);
        return;
      case 'reverse':
        this.seat.toggleReverse(this.#speedMps);
        return;
      case 'help':
        this.events.help();
        return;
      default:
        this.signals.press(press);
    }
  }

  stop(nowMs: number): void {
    if (!this.mayAct) return;
    this.seat.stop();
    this.#acts.stop(nowMs);
    this.events.urgent();
    this.events.stopAsked();
  }

  /** Something speaks against the person's presence: nothing that was held counts any more. */
  leave(absence: Parameters<Presence['set']>[0]): void {
    this.#keyboard.releaseAll();
    this.pads.disarm();
    this.#acts.withdraw();
    this.hornPressed = false;
    this.presence.set(absence, true);
  }

  /** What was asked of a vehicle that was let go of is not asked of the next one. */
  forget(): void {
    this.#guard = null;
    this.#acts.forget();
    this.seat.resume();
  }

  /** Takes what the vehicle tells, `atMs` by `performance.now`. A guard that says nothing acknowledges nothing. */
  observe({ guard }: Pick<TelemetryView, 'guard'>, atMs: number): void {
    this.#guard = guard;
    if (guard === null) return;
    this.#acts.observe(guard, atMs);
    if (guard.blockers.includes('dead-man')) this.deadMan.require();
    // From here on the guard holds it, whatever this page does.
    if (this.#acts.emergencyStop === null) this.seat.resume();
  }

  /** `speedMps` null: not known; `padDrives`: it is not being calibrated. */
  command(speedMps: number | null, padDrives: boolean, seconds: number): Demand {
    const nowMs = performance.now();
    this.#speedMps = speedMps;
    const pad = this.pads.read(nowMs);
    this.#stillMs = pad?.stillMs ?? 0;
    this.#watchPad(pad?.frozen === true, pad?.touched === true);
    this.#held = this.deadMan.read(this.#keyboard.deadMan || pad?.deadMan === true);
    this.presence.set('dead-man released', this.#held === 'released');
    const { worst } = this.presence;
    if (worst !== null) this.seat.letGo(worst);
    else if (this.seat.released !== 'none') this.seat.takeUp();
    this.signals.horn = this.#keyboard.horn || this.hornPressed;
    const devices = { keys: this.#keyboard.keys(), pad: padDrives ? pad : null, speedMps };
    return {
      ...this.seat.command(devices, seconds),
      act: this.#acts.act(nowMs),
      emergencyStopNumber: this.#acts.emergencyStop ?? 0,
      deadMan: this.#held,
      absences: this.presence.bits,
      signals: bitsOf<Signal>(SIGNALS, this.signals.list()),
    };
  }

  /** A frozen pad speaks for itself until it is heard again, or until the person takes to the keys. */
  #watchPad(frozen: boolean, touched: boolean): void {
    if (frozen && !this.#padFrozen) this.leave('pad frozen');
    if (!frozen && this.#padFrozen) this.presence.set('pad frozen', false);
    this.#padFrozen = frozen;
    if (touched) this.presence.set('pad gone', false);
  }

  #begin(deed: Deed, nowMs: number): void {
    if (this.#guard !== null && this.#acts.emergencyStop === null) this.#acts.begin(deed, nowMs);
  }
}

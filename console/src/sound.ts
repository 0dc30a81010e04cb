import type { GuardMode } from './generated/kinds';

/** A sound of the page, by the event or state that it reports. */
export type Cue = 'stopping' | 'unacknowledged' | 'late' | 'limited' | 'countdown' | 'armed' | 'refused' | 'held' | 'pad quiet';

/** State that the sounds depend on. */
export interface Heard {
  /** `null` if unknown or not live. */
  mode: GuardMode | null;
  stopUnacknowledged: boolean;
  /** True if the picture is late or frozen while the machine may move. */
  late: boolean;
  /** True while the page shows that an action was not done. */
  refused: boolean;
  /** True while the page shows a countdown to a stop. */
  countdown: boolean;
  /** True if a device in use has sent nothing for so long that it may be frozen. */
  padQuiet: boolean;
}

export const SILENCE: Heard = { mode: null, stopUnacknowledged: false, late: false, refused: false, countdown: false, padQuiet: false };

/** Cues that repeat while their state lasts, and their period. */
const AGAIN_MS: Partial<Record<Cue, number>> = { unacknowledged: 400, stopping: 900, late: 900, countdown: 300, 'pad quiet': 900 };

/** Chooses the sound to play: the most urgent one that is due. */
export class Cues {
  #before: Heard = SILENCE;
  #lastAtMs = new Map<Cue, number>();

  next(heard: Heard, nowMs: number): Cue | null {
    const before = this.#before;
    this.#before = heard;
    const came = (mode: GuardMode): boolean => heard.mode === mode && before.mode !== mode;
    if (this.#goesOn('unacknowledged', heard.stopUnacknowledged, nowMs)) return 'unacknowledged';
    if (this.#goesOn('stopping', heard.mode === 'manoeuvre', nowMs)) return 'stopping';
    if (this.#goesOn('countdown', heard.countdown, nowMs)) return 'countdown';
    if (this.#goesOn('late', heard.late, nowMs)) return 'late';
    if (this.#goesOn('pad quiet', heard.padQuiet, nowMs)) return 'pad quiet';
    if (heard.refused && !before.refused) return 'refused';
    if (came('armed')) return 'armed';
    if (came('limited')) return 'limited';
    return came('held') && before.mode !== null ? 'held' : null;
  }

  /** Returns whether a repeated cue is due: when its state begins, and then once a period. */
  #goesOn(cue: Cue, holds: boolean, nowMs: number): boolean {
    if (!holds) {
      this.#lastAtMs.delete(cue);
      return false;
    }
    const due = nowMs - (this.#lastAtMs.get(cue) ?? -Infinity) >= AGAIN_MS[cue]!;
    if (due) this.#lastAtMs.set(cue, nowMs);
    return due;
  }
}

/** Frequency in Hz and duration in seconds of each sound's consecutive tones. */
const TONES: Readonly<Record<Cue, readonly [hertz: number, seconds: number][]>> = {
  stopping: [[880, 0.14], [587, 0.2]],
  unacknowledged: [[1175, 0.08], [1175, 0.08], [1175, 0.08]],
  late: [[440, 0.1], [440, 0.1]],
  limited: [[523, 0.12]],
  countdown: [[988, 0.05]],
  armed: [[587, 0.09], [880, 0.12]],
  refused: [[220, 0.22]],
  held: [[440, 0.09], [330, 0.12]],
  'pad quiet': [[698, 0.07], [698, 0.07]],
};
const GAP_S = 0.03;
const GAIN = 0.12;
const EDGE_S = 0.008;

/** Plays cues after the first press or click on the page; browsers allow no sound before. */
export class Speaker {
  #context: AudioContext | null = null;
  muted = false;

  constructor(target: Pick<EventTarget, 'addEventListener'>) {
    for (const name of ['pointerdown', 'keydown']) target.addEventListener(name, () => this.#wake());
  }

  play(cue: Cue): void {
    const context = this.#context;
    if (context === null || context.state !== 'running' || this.muted) return;
    let at = context.currentTime;
    for (const [hertz, seconds] of TONES[cue]) {
      tone(context, hertz, at, seconds);
      at += seconds + GAP_S;
    }
  }

  #wake(): void {
    if (typeof AudioContext === 'undefined') return;
    this.#context ??= new AudioContext();
    // A computer without a sound card refuses, and there is no sound.
    if (this.#context.state === 'suspended') this.#context.resume().catch(() => undefined);
  }
}

/** Plays a tone with soft edges, to avoid clicks. */
function tone(context: AudioContext, hertz: number, at: number, seconds: number): void {
  const oscillator = new OscillatorNode(context, { type: 'triangle', frequency: hertz });
  const gain = new GainNode(context, { gain: 0 });
  gain.gain.setValueAtTime(0, at);
  gain.gain.linearRampToValueAtTime(GAIN, at + EDGE_S);
  gain.gain.setValueAtTime(GAIN, at + seconds - EDGE_S);
  gain.gain.linearRampToValueAtTime(0, at + seconds);
  oscillator.connect(gain).connect(context.destination);
  oscillator.start(at);
  oscillator.stop(at + seconds);
}

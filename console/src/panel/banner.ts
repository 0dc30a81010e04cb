import { type ActsView, type Deed, UNACKNOWLEDGED_MS } from '../acts';
import type { Motion, Reason, Sight } from '../generated/kinds';
import { type GuardView, NEEDS, blackBoxWords, causeWords, needWords } from '../guard';
import type { SteeringDeed } from '../person';
import { SessionState } from '../message/session-state';
import type { Quiet } from '../input/gamepad';
import type { Release } from '../input/seat';
import type { Connection, StatusView, TelemetryView, ValueView } from '../report';
import type { Standing } from '../wire';
import { isTwisted } from '../twist';
import { byId, setData, setText } from './element';

/** Age in ms above which telemetry is shown as stale. */
export const STALE_MS = 500;
/** Shown instead of a mode while the guard is silent: nobody knows what the machine does. */
export const GUARD_SILENT = 'Guard silent';

export interface Facts {
  canDecode: boolean;
  connection: Connection;
  /** `null` until the operator's process reports it. */
  standing: Standing | null;
  /** True if a vehicle has to be picked first. */
  choosing: boolean;
  status: StatusView | null;
  telemetry: TelemetryView | null;
  /** `null` before the first telemetry. */
  telemetryAgeMs: number | null;
  release: Release;
  acts: ActsView;
  /** Device in use that has sent nothing for long; `null` if there is none. */
  padQuiet: Quiet | null;
  /** Name of a frozen or unsound device in use; `null` if there is none. */
  padTroubled: string | null;
  /** Why the operator's recorder has stopped; empty while it records, or is not supposed to. */
  recorderTrouble: string;
  /** Why this page does not show the vehicle's picture; `null` if it does. */
  pictureRefusal: string | null;
}

export type Action = 'ask' | 'withdraw' | 'agree' | 'refuse' | 'arm' | 'reset' | 'retry' | 'focus' | 'take-over' | SteeringDeed;

export interface Notice {
  tone: 'bad' | 'warn' | 'calm';
  title: string;
  detail: string;
  action?: Choice;
  /** Second choice. */
  other?: Choice;
  /** Third choice. */
  third?: Choice;
}

interface Choice {
  name: Action;
  label: string;
}

const SESSION_WORDS: Readonly<Record<SessionState, string>> = {
  [SessionState.Registering]: 'Registering with the switchboard',
  [SessionState.Waiting]: 'Waiting for the vehicle',
  [SessionState.Connecting]: 'Connecting to the vehicle',
  [SessionState.Established]: 'Session established',
  [SessionState.Lost]: 'The session is lost',
};

/**
 * Returns the most important notice; `null` if there is nothing to report. The functions are called
 * in the order of importance.
 */
export function noticeOf(facts: Facts): Notice | null {
  const first = stopNotice(facts) ?? connectionNotice(facts) ?? standingNotice(facts);
  // While a vehicle has to be picked, the list of vehicles replaces all other notices.
  if (first !== null || facts.choosing) return first;
  return vehicleNotice(facts) ?? seatNotice(facts) ?? sourceNotice(facts) ?? sightNotice(facts) ?? recordNotice(facts);
}

/** Returns the notice of an unacknowledged emergency stop, which comes before all others. */
function stopNotice({ acts: { stopUnacknowledgedMs } }: Facts): Notice | null {
  if (stopUnacknowledgedMs === null || stopUnacknowledgedMs < UNACKNOWLEDGED_MS) return null;
  return {
    tone: 'bad', title: 'Emergency stop not acknowledged',
    detail: `Requested ${(stopUnacknowledgedMs / 1000).toFixed(1)} s ago without an answer from the vehicle. Every command repeats the request.`,
  };
}

function connectionNotice({ canDecode, connection }: Facts): Notice | null {
  if (!canDecode) {
    const detail = window.isSecureContext
      ? 'It lacks WebCodecs. Use a current Chromium, Firefox or Safari.'
      : 'Browsers decode video only on localhost or over HTTPS. Open this page through an SSH tunnel, for example.';
    return { tone: 'bad', title: 'This browser cannot show the picture', detail };
  }
  switch (connection.state) {
    case 'not-admitted':
      return {
        tone: 'bad', title: 'This browser is no longer admitted',
        detail: 'The operator process has restarted. Open the address that it printed.',
      };
    case 'connecting':
      return { tone: 'calm', title: 'Connecting', detail: 'Waiting for the operator process.' };
    case 'waiting':
      return {
        tone: 'bad', title: 'No connection to the operator process',
        detail: `${connection.reason}; next attempt in ${(connection.retryInMs / 1000).toFixed(1)} s. The vehicle stops by itself.`,
        action: { name: 'retry', label: 'Try now' },
      };
    case 'open':
      return null;
  }
}

function standingNotice({ standing, acts }: Facts): Notice | null {
  if (standing === null) return null;
  const { role, holder, request, agreed, reason } = standing;
  if (role === 'drives') {
    if (agreed !== null) {
      return {
        tone: 'warn', title: 'Handing over', detail: `You drive until the console at ${agreed.address} has taken over.`,
        action: { name: 'refuse', label: 'Keep driving' },
      };
    }
    return request === null ? null : {
      tone: 'warn', title: 'Another console asks to drive', detail: `It is at ${request.address}. At standstill it takes over without your consent.`,
      action: { name: 'refuse', label: 'No' }, other: { name: 'agree', label: 'Hand over' },
    };
  }
  if (role === 'watches') {
    const driver = holder === null ? 'Nobody drives.' : `The console at ${holder.address} drives.`;
    return { tone: 'calm', title: 'Watching', detail: `${driver} This page can only watch.` };
  }
  if (holder === null) {
    return { tone: 'warn', title: 'Nobody drives', detail: 'The vehicle stops by itself.', action: { name: 'ask', label: 'Drive' } };
  }
  const who = `The console at ${holder.address} has been driving since ${new Date(holder.sinceUnixMs).toLocaleTimeString()}.`;
  switch (role) {
    case 'asks':
      return {
        tone: 'calm', title: 'Asked to drive', detail: `${who} You drive once it agrees or the vehicle stands still.`,
        action: { name: 'withdraw', label: 'Withdraw' },
      };
    case 'succeeds':
      return {
        tone: 'warn', title: 'Take over', detail: `${who} It hands over to you: take wheel and throttle, then press Enter.`,
        ...(acts.last?.kind === 'take over' ? refusal(acts) : null),
        action: { name: 'take-over', label: 'Take over' }, other: { name: 'withdraw', label: 'No' },
      };
    case 'refused':
      return { tone: 'warn', title: 'The other console refused', detail: who, action: { name: 'ask', label: 'Ask again' } };
    case 'waits':
      return {
        tone: 'warn', title: reason === null ? 'Another console drives' : 'Another console drives now', detail: `${LOST[reason ?? 'gone']}${who}`,
        action: { name: 'ask', label: 'Ask to drive' },
      };
  }
}

/** Why this console no longer drives, before the text that says who does. */
const LOST: Readonly<Record<Reason, string>> = {
  consent: 'You agreed. ',
  standstill: 'It asked while the vehicle stood still. ',
  vacant: '',
  gone: '',
};

function vehicleNotice(facts: Facts): Notice | null {
  const { status, telemetry, telemetryAgeMs, acts } = facts;
  if (status !== null && status.sessionState !== SessionState.Established) {
    const tone = status.sessionState === SessionState.Lost ? 'bad' : 'calm';
    return { tone, title: SESSION_WORDS[status.sessionState], detail: status.sessionReason };
  }
  if (telemetry === null || telemetryAgeMs === null) {
    return { tone: 'calm', title: 'Waiting for the vehicle', detail: 'No telemetry yet.' };
  }
  if (telemetryAgeMs > STALE_MS) {
    return {
      tone: 'bad', title: 'Telemetry is stale',
      detail: `No telemetry for ${(telemetryAgeMs / 1000).toFixed(1)} s: speed and mode are out of date.`,
    };
  }
  if (telemetry.guard === null) return { tone: 'bad', title: GUARD_SILENT, detail: silentWords(telemetry) };
  const notice = guardNotice(telemetry.guard, acts, telemetry.sight);
  const record = blackBoxWords(telemetry.guard.blackBox);
  if (notice === null) {
    const reason = telemetry.modeReason;
    return reason === '' ? null : { tone: 'warn', title: 'Not driven from here', detail: sentence(reason) };
  }
  const more = [telemetry.modeReason, sourceWords(facts), record].filter((words) => words !== '').map((words) => ` ${sentence(words)}`);
  return { ...notice, detail: `${notice.detail}${more.join('')}` };
}

/** Describes a silent guard: with the vehicle's reason, if it sends one. */
export function silentWords({ modeReason }: TelemetryView): string {
  return modeReason === '' ? 'the vehicle\'s guard sends nothing' : modeReason;
}

/** Returns the fault of the picture on this page or at the vehicle; empty if there is none. */
function sourceWords({ telemetry, pictureRefusal }: Facts): string {
  return pictureRefusal ?? telemetry?.sourceTrouble ?? '';
}

/**
 * Returns the notice of a fault of the picture. If the guard has a notice, `vehicleNotice` appends
 * the fault to it instead.
 */
function sourceNotice(facts: Facts): Notice | null {
  const words = sourceWords(facts);
  return words === '' ? null : { tone: 'warn', title: 'Problem with the picture', detail: sentence(words) };
}

function sentence(words: string): string {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}${words.endsWith('.') ? '' : '.'}`;
}

/**
 * Returns the notice that the vehicle's black box or the operator does not record. It comes last,
 * because it does not stop the vehicle.
 */
function recordNotice({ telemetry, recorderTrouble }: Facts): Notice | null {
  const words = blackBoxWords(telemetry?.guard?.blackBox ?? 'absent');
  const title = words === '' && recorderTrouble !== '' ? `The operator does not record: ${recorderTrouble}` : words;
  return title === '' ? null : { tone: 'warn', title, detail: 'This drive is not fully recorded.' };
}

/**
 * Returns why the operator's recorder has stopped, from the values of its snapshot; empty if it has
 * not.
 */
export function recorderTrouble(values: readonly ValueView[]): string {
  const told = values.find(({ name }) => name.startsWith(RECORDER_TROUBLE));
  return told === undefined ? '' : told.name.slice(RECORDER_TROUBLE.length);
}

const RECORDER_TROUBLE = 'recording stands still: ';

function guardNotice(guard: GuardView, acts: ActsView, sight: readonly Sight[]): Notice | null {
  switch (guard.mode) {
    case 'driving':
    case 'limited':
      return drivenRefusal(acts);
    case 'armed':
      return drivenRefusal(acts) ?? armedNotice(acts, guard.motion, sight);
    case 'manoeuvre':
      return { tone: 'bad', title: 'Stopping', detail: `${causeWords(guard)}.` };
    case 'held':
      return heldNotice(guard, acts);
  }
}

function armedNotice({ steeringShown }: ActsView, motion: Motion, sight: readonly Sight[]): Notice {
  if (steeringShown) {
    return {
      tone: 'warn', title: 'Did the wheels turn left, then right?', detail: 'Watch the picture, or ask somebody at the machine.',
      action: { name: 'steering agrees', label: 'Yes' }, other: { name: 'steering wrong', label: 'Mirrored or wrong' },
      third: { name: 'steering unseen', label: 'Cannot be seen' },
    };
  }
  const armed: Notice = { tone: 'calm', title: 'Armed', detail: isTwisted(motion) ? 'Drive by keys, sticks or touch.' : 'Press the throttle to drive.' };
  if (isTwisted(motion) || !sight.includes('unchecked')) return armed;
  return {
    ...armed, detail: `${armed.detail} The steering has not been checked yet.`,
    action: { name: 'check steering', label: 'Turn the wheels' },
  };
}

/** Returns the notice of a problem that the vehicle detects in its pictures. */
function sightNotice({ telemetry }: Facts): Notice | null {
  const sight = telemetry?.sight ?? [];
  if (sight.includes('repeats')) {
    const source = sight.includes('recorded') ? 'The clip is frozen' : 'The camera repeats the same picture';
    return { tone: 'bad', title: source, detail: 'A moving vehicle is stopped.' };
  }
  if (sight.includes('moves')) {
    return { tone: 'bad', title: 'The picture moves while the machine reports standstill', detail: 'The reported speed may be wrong. Brake, and have the speed sensor checked.' };
  }
  if (sight.includes('contradicts')) {
    return { tone: 'bad', title: 'The picture moves against the steering', detail: 'The camera or the steering is mirrored. Stop, and check the steering.' };
  }
  if (sight.includes('uniform')) {
    return { tone: 'warn', title: 'The picture shows nothing', detail: 'It has the same brightness everywhere: is the lens covered, or is it dark?' };
  }
  return null;
}

/** Returns why the last action was refused; `null` if it was done, or if there was none. */
function refusal({ last }: ActsView): Notice | null {
  if (last === null || last.outcome === 'done') return null;
  const why = last.outcome === 'unanswered' ? 'the vehicle did not answer: try again' : NEEDS[last.outcome];
  return { tone: 'warn', title: REFUSED[last.kind], detail: `${why.charAt(0).toUpperCase()}${why.slice(1)}.` };
}

/**
 * Returns why an armed or driven machine refused the last action. Arming, resetting and taking over
 * are pointless then: their refusal says nothing.
 */
function drivenRefusal(acts: ActsView): Notice | null {
  return ['arm', 'reset', 'take over'].includes(acts.last?.kind ?? '') ? null : refusal(acts);
}

function heldNotice(guard: GuardView, acts: ActsView): Notice {
  const refused = refusal(acts);
  if (refused !== null) return refused;
  const others = guard.blockers.filter((blocker) => blocker !== 'latched');
  const needs = needWords(others);
  if (guard.latched) {
    return {
      tone: 'bad', title: 'Held after a stop', detail: `${causeWords(guard)}. ${needs || 'Backspace resets the stop.'}`,
      action: { name: 'reset', label: 'Reset the stop' },
    };
  }
  return {
    tone: needs === '' ? 'calm' : 'warn', title: 'Held',
    detail: `${causeWords(guard)}. ${needs || (acts.pending === 'arm' ? 'Arming.' : 'Enter arms the vehicle.')}`,
    action: { name: 'arm', label: 'Arm' },
  };
}

const REFUSED: Readonly<Record<Deed['kind'], string>> = {
  arm: 'Not armed', reset: 'Not reset', park: 'Not parked', 'take over': 'Not taken over', 'check steering': 'Wheels not turned',
  request: 'Request not accepted', 'steering agrees': 'Answer not accepted', 'steering wrong': 'Answer not accepted', 'steering unseen': 'Answer not accepted',
};

function seatNotice({ release, padQuiet, padTroubled }: Facts): Notice | null {
  const troubled = padTroubled ?? 'A device in use';
  switch (release) {
    case 'none':
      return padQuiet === null ? null : {
        tone: 'warn', title: 'Move the input device',
        detail: `${padQuiet.name} has sent nothing for ${seconds(padQuiet.quietMs)} s. After ${seconds(padQuiet.limitMs)} s it counts as frozen, and the vehicle stops.`,
      };
    case 'hidden':
      return { tone: 'warn', title: 'Controls released', detail: 'This page was hidden or frozen.' };
    case 'pad frozen':
      return {
        tone: 'bad', title: 'Device frozen', detail: `${troubled} sends nothing: controls released. Move it, or drive by keyboard.`,
        action: { name: 'focus', label: 'Drive by keyboard' },
      };
    case 'pad unsound':
      return {
        tone: 'bad', title: 'Device not usable', detail: `${troubled} sends no values for its calibrated axes: controls released. Calibrate it again.`,
        action: { name: 'focus', label: 'Drive by keyboard' },
      };
    case 'calibrating':
      return { tone: 'warn', title: 'Controls released', detail: 'A device is being calibrated. You cannot drive until that ends.' };
    case 'meta key':
      return { tone: 'warn', title: 'Keys released', detail: 'A Meta or OS key hides the release of other keys. Press a driving key again.' };
    case 'dead-man released':
      return { tone: 'warn', title: 'Dead-man input released', detail: 'Hold Shift, the gamepad\'s left shoulder button or a touch control to drive.' };
    case 'unfocused':
      return {
        tone: 'calm', title: 'Controls released', detail: 'The page has lost the keyboard focus.',
        action: { name: 'focus', label: 'Continue' },
      };
    case 'pad gone':
      return {
        tone: 'warn', title: 'Device disconnected', detail: 'Controls released, braking gently.',
        action: { name: 'focus', label: 'Drive by keyboard' },
      };
  }
}

/** The banner over the picture. */
export class Banner {
  readonly #box = byId('banner');
  readonly #title = byId('banner-title');
  readonly #detail = byId('banner-detail');
  readonly #button = byId<HTMLButtonElement>('banner-action');
  readonly #other = byId<HTMLButtonElement>('banner-other');
  readonly #third = byId<HTMLButtonElement>('banner-third');
  readonly #stage = this.#box.closest<HTMLElement>('.stage')!;
  #notice: Notice | null = null;

  constructor(act: (action: Action) => void) {
    const listen = (button: HTMLButtonElement, choice: () => Choice | undefined): void => {
      button.addEventListener('click', () => {
        button.blur();
        const chosen = choice();
        if (chosen !== undefined) act(chosen.name);
      });
    };
    listen(this.#button, () => this.#notice?.action);
    listen(this.#other, () => this.#notice?.other);
    listen(this.#third, () => this.#notice?.third);
  }

  show(facts: Facts): void {
    const notice = noticeOf(facts);
    this.#box.hidden = notice === null;
    if (notice !== null) {
      setData(this.#box, 'tone', notice.tone);
      setText(this.#title, notice.title);
      setText(this.#detail, notice.detail);
      setText(this.#button, notice.action?.label ?? '');
      setText(this.#other, notice.other?.label ?? '');
      setText(this.#third, notice.third?.label ?? '');
    }
    this.#button.hidden = notice?.action === undefined;
    this.#other.hidden = notice?.other === undefined;
    this.#third.hidden = notice?.third === undefined;
    this.#notice = notice;
    setData(this.#stage, 'stale', String(facts.connection.state !== 'open' || facts.standing?.role !== 'drives' && facts.standing?.role !== 'succeeds'));
  }
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(0);
}

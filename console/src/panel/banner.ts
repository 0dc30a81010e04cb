import { Mode } from '../message/mode';
import { SessionState } from '../message/session-state';
import type { Release } from '../input/seat';
import type { Connection, StatusView, TelemetryView } from '../report';
import type { Reason, Standing } from '../wire';
import { byId, setData, setText } from './element';

/** Older telemetry is shown as stale. */
export const STALE_MS = 500;

export interface Facts {
  canDecode: boolean;
  connection: Connection;
  /** Null: not told yet. */
  standing: Standing | null;
  status: StatusView | null;
  telemetry: TelemetryView | null;
  /** Null: none came yet. */
  telemetryAgeMs: number | null;
  emergencyStop: boolean;
  release: Release;
}

export type Action = 'ask' | 'withdraw' | 'agree' | 'refuse' | 'release-stop' | 'retry' | 'focus';

export interface Notice {
  tone: 'bad' | 'warn' | 'calm';
  title: string;
  detail: string;
  action?: Choice;
  /** What else can be done. */
  other?: Choice;
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

/** The one thing the person must know now; null while driving is undisturbed. Worst first. */
export function noticeOf(facts: Facts): Notice | null {
  return connectionNotice(facts) ?? standingNotice(facts) ?? vehicleNotice(facts) ?? seatNotice(facts);
}

function connectionNotice({ canDecode, connection }: Facts): Notice | null {
  if (!canDecode) {
    const detail = window.isSecureContext
      ? 'It has no WebCodecs; a current Chromium, Firefox or Safari has.'
      : 'Browsers decode video only on pages from localhost or by HTTPS: open this one by an SSH tunnel, for example.';
    return { tone: 'bad', title: 'This browser cannot show the picture', detail };
  }
  switch (connection.state) {
    case 'not-admitted':
      return {
        tone: 'bad', title: 'This browser is not let in any more',
        detail: 'The operator process began anew: open the address that it has printed.',
      };
    case 'connecting':
      return { tone: 'calm', title: 'Connecting', detail: 'to the operator process' };
    case 'waiting':
      return {
        tone: 'bad', title: 'No connection to the operator process',
        detail: `${connection.reason}; next attempt in ${(connection.retryInMs / 1000).toFixed(1)} s. The vehicle stops itself.`,
        action: { name: 'retry', label: 'Try now' },
      };
    case 'open':
      return null;
  }
}

function standingNotice({ standing }: Facts): Notice | null {
  if (standing === null) return null;
  const { role, holder, request, reason } = standing;
  if (role === 'drives') {
    return request === null ? null : {
      tone: 'warn', title: 'Another console asks to drive', detail: `It is at ${request.address}. At standstill it drives without your word.`,
      action: { name: 'refuse', label: 'No' }, other: { name: 'agree', label: 'Let it drive' },
    };
  }
  if (holder === null) {
    return { tone: 'warn', title: 'Nobody drives', detail: 'The vehicle stops itself.', action: { name: 'ask', label: 'Drive' } };
  }
  const who = `It is at ${holder.address} and drives since ${new Date(holder.sinceUnixMs).toLocaleTimeString()}.`;
  switch (role) {
    case 'asks':
      return {
        tone: 'calm', title: 'Asked to drive', detail: `${who} It agrees, or the vehicle stands still: then this one drives.`,
        action: { name: 'withdraw', label: 'Ask no more' },
      };
    case 'refused':
      return { tone: 'warn', title: 'The other console said no', detail: who, action: { name: 'ask', label: 'Ask again' } };
    case 'waits':
      return {
        tone: 'warn', title: reason === null ? 'Another console drives' : 'Another console drives now', detail: `${LOST[reason ?? 'gone']}${who}`,
        action: { name: 'ask', label: 'Ask to drive' },
      };
  }
}

/** Why this console drives no longer. */
const LOST: Readonly<Record<Reason, string>> = {
  consent: 'You agreed. ',
  standstill: 'It asked while the vehicle stood still. ',
  vacant: '',
  gone: '',
};

function vehicleNotice({ emergencyStop, status, telemetry, telemetryAgeMs }: Facts): Notice | null {
  if (emergencyStop) {
    return {
      tone: 'bad', title: 'Emergency stop', detail: 'Full brake, no throttle. Enter releases it.',
      action: { name: 'release-stop', label: 'Release' },
    };
  }
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
      detail: `Nothing heard from the vehicle for ${(telemetryAgeMs / 1000).toFixed(1)} s: speed and mode are old.`,
    };
  }
  return modeNotice(telemetry);
}

function modeNotice({ mode, modeReason }: TelemetryView): Notice | null {
  switch (mode) {
    case Mode.Driving:
      return null;
    case Mode.AwaitingOperator:
      return { tone: 'calm', title: 'The vehicle awaits an operator', detail: modeReason };
    case Mode.Stopping:
      return { tone: 'bad', title: 'Stopping', detail: modeReason };
    case Mode.Stopped:
      return { tone: 'bad', title: 'Stopped', detail: modeReason };
    case Mode.AwaitingRelease:
      return { tone: 'warn', title: 'Let go of the pedal first', detail: modeReason };
  }
}

function seatNotice({ release }: Facts): Notice | null {
  switch (release) {
    case 'none':
      return null;
    case 'unfocused':
      return {
        tone: 'calm', title: 'Pedals released', detail: 'The page has lost the focus.',
        action: { name: 'focus', label: 'Drive on' },
      };
    case 'pad gone':
      return {
        tone: 'warn', title: 'Gamepad disconnected', detail: 'Pedals released, braking gently.',
        action: { name: 'focus', label: 'Drive by keyboard' },
      };
  }
}

const MODE_WORDS: Readonly<Record<Mode, [data: string, text: string]>> = {
  [Mode.AwaitingOperator]: ['awaiting-operator', 'Awaiting operator'],
  [Mode.Driving]: ['driving', 'Driving'],
  [Mode.Stopping]: ['stopping', 'Stopping'],
  [Mode.Stopped]: ['stopped', 'Stopped'],
  [Mode.AwaitingRelease]: ['awaiting-release', 'Awaiting release'],
};

/** The words over the picture: drive mode always, a banner when something is amiss. */
export class Banner {
  readonly #box = byId('banner');
  readonly #title = byId('banner-title');
  readonly #detail = byId('banner-detail');
  readonly #button = byId<HTMLButtonElement>('banner-action');
  readonly #other = byId<HTMLButtonElement>('banner-other');
  readonly #mode = byId('mode');
  readonly #reason = byId('mode-reason');
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
    }
    this.#button.hidden = notice?.action === undefined;
    this.#other.hidden = notice?.other === undefined;
    this.#notice = notice;
    setData(this.#stage, 'stale', String(facts.connection.state !== 'open' || facts.standing?.role !== 'drives'));
    this.#showMode(facts, notice);
  }

  /** The reason stands once: here only while the banner tells of something else. */
  #showMode({ telemetry }: Facts, notice: Notice | null): void {
    const [data, text] = telemetry === null ? ['none', '–'] : MODE_WORDS[telemetry.mode];
    setData(this.#mode, 'mode', data);
    setText(this.#mode, text);
    const reason = telemetry === null || telemetry.mode === Mode.Driving ? '' : telemetry.modeReason;
    setText(this.#reason, notice?.detail === reason ? '' : reason);
  }
}

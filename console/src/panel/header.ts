import { SessionState } from '../message/session-state';
import type { Connection, FleetView, StatusView, TelemetryView } from '../report';
import type { Standing } from '../wire';
import { byId, setData, setText } from './element';
import { UNKNOWN } from './format';
import { whoWords } from './who';

const SESSIONS: Readonly<Record<SessionState, [tone: string, text: string]>> = {
  [SessionState.Registering]: ['warn', 'registering'],
  [SessionState.Waiting]: ['warn', 'waiting for the vehicle'],
  [SessionState.Connecting]: ['warn', 'connecting to the vehicle'],
  [SessionState.Established]: ['good', 'session up'],
  [SessionState.Lost]: ['bad', 'session lost'],
};

const CONNECTIONS: Readonly<Record<Connection['state'], [tone: string, text: string]>> = {
  connecting: ['warn', 'connecting'],
  open: ['good', 'connected'],
  waiting: ['bad', 'disconnected'],
  'not-admitted': ['bad', 'not admitted'],
};

/** Shown when the session is up, but no live telemetry arrives. */
const SILENT: [tone: string, text: string] = ['bad', 'vehicle silent'];

const STOP_WORDS = {
  none: 'Emergency stop', asked: 'Stop requested', unheard: 'Stop not acknowledged', latched: 'Stopped',
} as const;

const CHOOSING: [tone: string, text: string] = ['warn', 'pick a vehicle'];

const WATCHING: [tone: string, text: string] = ['good', 'watching'];
const WAITING: [tone: string, text: string] = ['warn', 'not driving'];

/** The top bar: vehicle, connection, who drives, and the stop button. */
export class Header {
  readonly #vehicle = byId('vehicle');
  readonly #connection = byId('connection');
  readonly #session = byId('session');
  readonly #who = byId('who');
  readonly #stop = byId<HTMLButtonElement>('emergency-stop');
  readonly #leave = byId<HTMLButtonElement>('leave');
  #choosing = false;

  constructor(stop: () => void, leave: () => void) {
    this.#leave.addEventListener('click', () => {
      this.#leave.blur();
      leave();
    });
    this.#stop.addEventListener('click', () => {
      this.#stop.blur();
      stop();
    });
  }

  /** Shows the button to release the vehicle, enabled if `mayLeave` allows it. */
  showLeave(fleet: FleetView | null, standing: Standing | null, status: StatusView | null, live: TelemetryView | null): void {
    this.#choosing = fleet !== null && fleet.picked === null;
    this.#leave.hidden = fleet === null || this.#choosing || standing?.role !== 'drives';
    if (this.#leave.hidden) return;
    const may = mayLeave(status, live);
    if (this.#leave.disabled === may) this.#leave.disabled = !may;
    const title = may ? 'Release this vehicle and pick another' : 'Park the vehicle first (P)';
    if (this.#leave.title !== title) this.#leave.title = title;
  }

  /** `live` means that telemetry arrives. */
  show(
    connection: Connection, standing: Standing | null, vehicle: string, status: StatusView | null, live: boolean,
    stop: keyof typeof STOP_WORDS,
  ): void {
    const waits = connection.state === 'open' && standing !== null && standing.role !== 'drives';
    const watches = connection.state === 'open' && standing?.role === 'watches';
    const [tone, text] = watches ? WATCHING : waits ? WAITING : CONNECTIONS[connection.state];
    setData(this.#connection, 'tone', tone);
    setText(this.#connection, text);
    this.#stop.disabled = this.#choosing || watches;
    const established = status?.sessionState === SessionState.Established;
    const [sessionTone, sessionText] = connection.state === 'open' && this.#choosing ? CHOOSING
      : status === null || connection.state !== 'open' ? ['', UNKNOWN] : established && !live ? SILENT : SESSIONS[status.sessionState];
    setData(this.#session, 'tone', sessionTone);
    setText(this.#session, sessionText);
    const who = whoWords(connection.state === 'open' ? standing : null);
    setText(this.#who, who);
    this.#who.title = who;
    const name = this.#choosing ? 'no vehicle' : status?.vehicleName || vehicle || UNKNOWN;
    setText(this.#vehicle, name);
    setData(this.#stop, 'active', String(stop !== 'none'));
    setText(this.#stop, STOP_WORDS[stop]);
  }
}

/**
 * Returns whether the vehicle may be released: its session is not established, or live telemetry
 * shows that it is held or its guard silent. The operator's process checks the same.
 */
export function mayLeave(status: StatusView | null, live: TelemetryView | null): boolean {
  if (status === null || status.sessionState !== SessionState.Established) return true;
  return live !== null && (live.guard === null || live.guard.mode === 'held');
}

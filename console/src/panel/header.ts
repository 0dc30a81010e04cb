import { SessionState } from '../message/session-state';
import type { Connection, StatusView } from '../report';
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
  'not-admitted': ['bad', 'not let in'],
};

/** The session is there, and nothing comes from the vehicle: nobody knows whether it lives. */
const SILENT: [tone: string, text: string] = ['bad', 'vehicle silent'];

const STOP_WORDS = {
  none: 'Emergency stop', asked: 'Stop asked for', unheard: 'Stop not acknowledged', latched: 'Stopped',
} as const;

const WAITING: [tone: string, text: string] = ['warn', 'does not drive'];

/** The bar on top: which vehicle, connected to what, who drives it, and the stop button. */
export class Header {
  readonly #vehicle = byId('vehicle');
  readonly #connection = byId('connection');
  readonly #session = byId('session');
  readonly #who = byId('who');
  readonly #stop = byId<HTMLButtonElement>('emergency-stop');

  constructor(stop: () => void) {
    this.#stop.addEventListener('click', () => {
      this.#stop.blur();
      stop();
    });
  }

  /** `live`: telemetry comes. */
  show(
    connection: Connection, standing: Standing | null, vehicle: string, status: StatusView | null, live: boolean,
    stop: keyof typeof STOP_WORDS,
  ): void {
    const waits = connection.state === 'open' && standing !== null && standing.role !== 'drives';
    const [tone, text] = waits ? WAITING : CONNECTIONS[connection.state];
    setData(this.#connection, 'tone', tone);
    setText(this.#connection, text);
    const established = status?.sessionState === SessionState.Established;
    const [sessionTone, sessionText] = status === null || connection.state !== 'open' ? ['', UNKNOWN]
      : established && !live ? SILENT : SESSIONS[status.sessionState];
    setData(this.#session, 'tone', sessionTone);
    setText(this.#session, sessionText);
    const who = whoWords(connection.state === 'open' ? standing : null);
    setText(this.#who, who);
    this.#who.title = who;
    const name = status?.vehicleName || vehicle || UNKNOWN;
    setText(this.#vehicle, name);
    setData(this.#stop, 'active', String(stop !== 'none'));
    setText(this.#stop, STOP_WORDS[stop]);
  }
}

import type { Connection } from './report';

export interface SocketEvents {
  message(message: ArrayBuffer): void;
  connection(connection: Connection): void;
}

// Time without a message after which the connection counts as dead. The operator's status comes ten
// times a second.
const OPERATOR_TIMEOUT_MS = 3_000;
const RETRY_FIRST_MS = 250;
const RETRY_LAST_MS = 5_000;
// Bytes that may wait to be sent: about 40 commands. A command that waits behind more is stale, and
// the next one follows in 20 ms.
const BACKLOG_BYTES_MAX = 4_096;

/**
 * The connection to the operator's process. It reconnects by itself, unless the operator does not
 * admit this browser.
 */
export class OperatorSocket {
  #socket: WebSocket | null = null;
  #attempt = 0;
  #heardAtMs = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;

  /**
   * `session` is an address that answers 401 to a browser that is not admitted. A refused WebSocket
   * gives no reason.
   */
  constructor(readonly address: string, readonly session: string, readonly events: SocketEvents) {
    setInterval(() => this.#watch(), 500);
  }

  connect(): void {
    clearTimeout(this.#retry);
    this.#detach();
    this.#attempt += 1;
    this.events.connection({ state: 'connecting', attempt: this.#attempt });
    const socket = new WebSocket(this.address);
    socket.binaryType = 'arraybuffer';
    this.#socket = socket;
    this.#heardAtMs = performance.now();
    socket.onopen = () => this.events.connection({ state: 'open' });
    socket.onmessage = (event: MessageEvent<unknown>) => {
      this.#heardAtMs = performance.now();
      if (event.data instanceof ArrayBuffer) this.events.message(event.data);
    };
    socket.onclose = (event) => this.#closed(event.code, event.reason);
  }

  /** Resets the retry delay after the operator's hello. */
  greeted(): void {
    this.#attempt = 0;
  }

  /**
   * Sends the message. Returns false and drops it if there is no connection, or so much waits to be
   * sent that the message would be stale.
   */
  send(message: Uint8Array<ArrayBuffer>): boolean {
    const socket = this.#socket;
    if (socket === null || socket.readyState !== WebSocket.OPEN) return false;
    if (socket.bufferedAmount > BACKLOG_BYTES_MAX) return false;
    socket.send(message);
    return true;
  }

  #closed(code: number, reason: string): void {
    this.#detach();
    const retryInMs = retryDelay(this.#attempt, Math.random());
    const why = reason !== '' ? reason : code === 1006 ? 'the operator process does not answer' : `closed with code ${code}`;
    this.events.connection({ state: 'waiting', attempt: this.#attempt, retryInMs, reason: why });
    this.#retry = setTimeout(() => this.connect(), retryInMs);
    if (code === 1006) void this.#askWhetherAdmitted(this.#attempt);
  }

  async #askWhetherAdmitted(attempt: number): Promise<void> {
    const answer = await fetch(this.session).catch(() => null);
    if (answer?.status !== 401 || attempt !== this.#attempt) return;
    clearTimeout(this.#retry);
    this.#detach();
    this.events.connection({ state: 'not-admitted' });
  }

  #watch(): void {
    if (this.#socket === null || performance.now() - this.#heardAtMs < OPERATOR_TIMEOUT_MS) return;
    this.#closed(0, `no data for ${OPERATOR_TIMEOUT_MS / 1000} s`);
  }

  /**
   * Drops the old socket without waiting: the close handshake with a dead peer can take minutes.
   */
  #detach(): void {
    const socket = this.#socket;
    this.#socket = null;
    if (socket === null) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
  }
}

/**
 * Returns the delay before the next attempt in ms: it doubles from 250 ms to 5 s, and is reduced by
 * up to 25 % at random. `random` is in [0, 1).
 */
export function retryDelay(attempt: number, random: number): number {
  const delay = Math.min(RETRY_LAST_MS, RETRY_FIRST_MS * 2 ** Math.max(0, attempt - 1));
  return Math.round(delay * (0.75 + random / 4));
}

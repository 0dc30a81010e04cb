/**
 * The worker that holds the connection, the decoders and the canvas, separate from the page's
 * thread.
 *
 * Its timer also drives the page at 50 Hz: the page answers each tick with a command, which is sent
 * at once. A page that hangs sends no commands, and the vehicle stops.
 */
import { FROM_OPERATOR } from './generated/kinds';
import { OperatorClock, nowMs } from './clock';
import { Counters } from './counters';
import { readDescription, readValues } from './description';
import { readSnapshot, readStatus, readTelemetry } from './reading';
import type { EngineReport, PageRequest } from './report';
import { OperatorSocket } from './socket';
import { decodesByHardware } from './video/hardware';
import { pixelsShown, refusalOf } from './video/limits';
import { Player } from './video/player';
import { Screen } from './video/screen';
import {
  answerMessage, askMessage, commandMessage, decoderMessage, leaveMessage, linkActionMessage, parseFleet, parseHello,
  parsePong, parseSlice, parseStanding, parseTopics, pickMessage, pingMessage, videoFeedbackMessage,
} from './wire';
import type { PictureFormat } from './wire';

const TICK_MS = 20;
const VIDEO_REPORT_MS = 200;
const PING_MS = 250;
// Period of the video feedback, with which a page that falls behind requests fewer pictures.
const FEEDBACK_MS = 50;

type EngineDrop = 'bad message' | 'unknown message' | 'command not sent';

const page = self as unknown as {
  postMessage(report: EngineReport): void;
  onmessage: ((event: MessageEvent<PageRequest>) => void) | null;
};

class Engine {
  readonly #clock = new OperatorClock();
  readonly #drops = new Counters<EngineDrop>(['bad message', 'unknown message', 'command not sent']);
  readonly #socket: OperatorSocket;
  readonly #player: Player;
  #open = false;
  #drives = false;
  /** Vehicle named in the last hello. */
  #vehicle: string | null = null;
  /**
   * Largest picture, in pixels, that this browser shows in time; `null` until the browser has
   * reported it, or if it does not.
   */
  #pixelsMax: number | null = null;

  constructor(address: string, session: string, canvas: OffscreenCanvas) {
    this.#player = new Player(new Screen(canvas), this.#clock, (strips) => {
      this.#socket.send(videoFeedbackMessage(strips, this.#player.pictureInterval, this.#pixelsMax));
    }, (call) => requestAnimationFrame(call));
    this.#socket = new OperatorSocket(address, session, {
      message: (message) => this.#receive(message),
      connection: (connection) => {
        this.#open = connection.state === 'open';
        if (this.#open) {
          this.#clock.reset();
          this.#ping();
        } else {
          this.#drives = false;
          this.#player.stop();
        }
        page.postMessage({ kind: 'connection', connection });
      },
    });
    this.#socket.connect();
    void pixelsShown(typeof VideoDecoder === 'undefined' ? undefined : VideoDecoder).then((pixels) => { this.#pixelsMax = pixels; });
    setInterval(() => page.postMessage({ kind: 'tick', seen: this.#player.seen() }), TICK_MS);
    setInterval(() => this.#ping(), PING_MS);
    setInterval(() => this.#report(), VIDEO_REPORT_MS);
    setInterval(() => this.#feedBack(), FEEDBACK_MS);
  }

  request(request: Exclude<PageRequest, { kind: 'start' }>): void {
    switch (request.kind) {
      case 'command': {
        // The operator's process accepts an emergency stop from every console.
        const counts = this.#drives || request.command.emergencyStopNumber !== 0;
        if (!this.#open || !counts) return;
        const message = commandMessage(request.command, this.#player.seen()?.tick ?? 0, this.#operatorMs());
        if (!this.#socket.send(message)) this.#drops.add('command not sent');
        return;
      }
      case 'visible':
        this.#player.visible = request.visible;
        return;
      case 'link':
        this.#socket.send(linkActionMessage(request.link, request.cut));
        return;
      case 'ask':
        this.#socket.send(askMessage(request.asks));
        return;
      case 'answer':
        this.#socket.send(answerMessage(request.request, request.agrees));
        return;
      case 'pick':
        this.#socket.send(pickMessage(request.vehicle));
        return;
      case 'leave':
        this.#socket.send(leaveMessage());
        return;
      case 'reconnect':
        this.#socket.connect();
        return;
    }
  }

  #operatorMs(): number | null {
    const best = this.#clock.best();
    return best === null ? null : nowMs() + best.offsetMs;
  }

  #receive(message: ArrayBuffer): void {
    const receivedAtMs = nowMs();
    try {
      this.#handle(message, receivedAtMs);
    } catch {
      this.#drops.add('bad message');
    }
  }

  #handle(message: ArrayBuffer, receivedAtMs: number): void {
    switch (new Uint8Array(message)[0]) {
      case FROM_OPERATOR.slice:
        this.#player.feed(parseSlice(message));
        return;
      case FROM_OPERATOR.telemetry:
        page.postMessage({ kind: 'telemetry', telemetry: readTelemetry(message) });
        return;
      case FROM_OPERATOR.status:
        page.postMessage({ kind: 'status', status: readStatus(message) });
        return;
      case FROM_OPERATOR.snapshot:
        page.postMessage({ kind: 'snapshot', snapshot: readSnapshot(message) });
        return;
      case FROM_OPERATOR.pong: {
        const pong = parsePong(message);
        this.#clock.observe(pong.askedAtMs, pong.operatorMs, receivedAtMs);
        return;
      }
      case FROM_OPERATOR.standing: {
        const standing = parseStanding(message);
        // A console that is about to take over gets the picture and sends commands too. The vehicle
        // decides whose commands it acts on.
        this.#drives = standing.role === 'drives' || standing.role === 'succeeds';
        if (!this.#drives) this.#player.stop();
        page.postMessage({ kind: 'standing', standing });
        return;
      }
      case FROM_OPERATOR.description:
        page.postMessage({ kind: 'description', description: readDescription(message) });
        return;
      case FROM_OPERATOR.values:
        page.postMessage({ kind: 'readings', readings: readValues(message) });
        return;
      case FROM_OPERATOR.topics:
        page.postMessage({ kind: 'topics', topics: parseTopics(message) });
        return;
      case FROM_OPERATOR.fleet:
        page.postMessage({ kind: 'fleet', fleet: parseFleet(message) });
        return;
      case FROM_OPERATOR.hello: {
        const hello = parseHello(message);
        this.#socket.greeted();
        const refusal = hello.picture === null ? null : refusalOf(hello.picture);
        if (hello.picture === null || refusal !== null) this.#player.stop();
        else this.#player.start(hello.picture, hello.vehicle === this.#vehicle);
        this.#vehicle = hello.vehicle;
        void this.#tellDecoder(hello.picture);
        page.postMessage({ kind: 'hello', hello: refusal === null ? hello : { ...hello, picture: null }, refusal });
        return;
      }
      default:
        this.#drops.add('unknown message');
    }
  }

  async #tellDecoder(picture: PictureFormat | null): Promise<void> {
    const decoder = typeof VideoDecoder === 'undefined' ? undefined : VideoDecoder;
    this.#socket.send(decoderMessage(await decodesByHardware(picture, decoder)));
  }

  #ping(): void {
    if (this.#open) this.#socket.send(pingMessage(nowMs()));
  }

  #feedBack(): void {
    if (this.#open && this.#drives) this.#socket.send(videoFeedbackMessage(0, this.#player.pictureInterval, this.#pixelsMax));
  }

  #report(): void {
    const video = this.#player.view();
    page.postMessage({ kind: 'video', video: { ...video, drops: [...this.#drops.list(), ...video.drops] } });
  }
}

let engine: Engine | null = null;
page.onmessage = (event) => {
  const request = event.data;
  if (request.kind === 'start') {
    engine ??= new Engine(request.address, request.session, request.canvas);
  } else {
    engine?.request(request);
  }
};

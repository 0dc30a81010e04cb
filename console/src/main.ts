/** Wiring: engine (worker) to panels, devices to engine. */
import { nowMs } from './clock';
import { Gamepads } from './input/gamepad';
import { Keyboard } from './input/keyboard';
import { Seat } from './input/seat';
import { End } from './message/end';
import { Banner, STALE_MS, type Action } from './panel/banner';
import { Counts } from './panel/counts';
import { Dials } from './panel/dials';
import { Drops } from './panel/drops';
import { byId } from './panel/element';
import { Details, Figures } from './panel/figures';
import { Header } from './panel/header';
import { Links } from './panel/links';
import { PadPanel } from './panel/pad';
import { Timing } from './panel/timing';
import type {
  Connection, Controlled, EngineReport, PageRequest, SnapshotView, StatusView, TelemetryView, VideoView,
} from './report';
import type { PictureFormat, Standing } from './wire';

// Figures are read by eye: faster would only cost.
const RENDER_MS = 100;

class Console {
  readonly #engine = new Worker(new URL('./engine.ts', import.meta.url), { type: 'module' });
  readonly #seat = new Seat();
  readonly #pads = new Gamepads({
    emergencyStop: () => this.#seat.stop(),
    toggleReverse: () => this.#toggleReverse(),
    gone: () => this.#seat.letGo('pad gone'),
  }, localStorage);
  readonly #keyboard = new Keyboard(window, {
    emergencyStop: () => this.#seat.stop(),
    releaseEmergencyStop: () => this.#seat.resume(),
    toggleReverse: () => this.#toggleReverse(),
    touched: () => this.#seat.takeUp(),
  });
  readonly #banner = new Banner((action) => this.#act(action));
  readonly #header = new Header(() => this.#seat.stop());
  readonly #dials = new Dials();
  readonly #links = new Links((link, cut) => this.#request({ kind: 'link', link, cut }));
  readonly #timing = new Timing();
  readonly #figures = new Figures();
  readonly #drops = new Drops();
  readonly #counts = new Counts();
  readonly #details = new Details();
  readonly #padPanel = new PadPanel(this.#pads);
  readonly #canDecode = typeof VideoDecoder !== 'undefined';

  #connection: Connection = { state: 'connecting', attempt: 1 };
  #standing: Standing | null = null;
  #vehicle = '';
  #telemetry: TelemetryView | null = null;
  #telemetryAtMs = 0;
  #status: StatusView | null = null;
  #operatorSnapshot: SnapshotView | null = null;
  #vehicleSnapshot: SnapshotView | null = null;
  #vehicleSnapshotAtMs = 0;
  #video: VideoView | null = null;
  #sent: Controlled = this.#seat.command({ keys: this.#keyboard.keys(), pad: null, speedMps: null }, 0);
  #tickedAtMs = nowMs();

  constructor() {
    this.#engine.onmessage = (event: MessageEvent<EngineReport>) => this.#receive(event.data);
    const canvas = byId<HTMLCanvasElement>('picture').transferControlToOffscreen();
    // An address that was used before still has its token; it is spent, and no other page's business.
    history.replaceState(null, '', location.pathname);
    const address = new URL(`ws?console=${consoleId()}`, location.href);
    address.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
    const session = new URL('session', location.href).href;
    this.#engine.postMessage({ kind: 'start', address: address.href, session, canvas } satisfies PageRequest, [canvas]);
    this.#watchFocus();
    // Not by the worker's ticks: should they end, the page must say so.
    setInterval(() => {
      if (!document.hidden) this.#render();
    }, RENDER_MS);
  }

  #receive(report: EngineReport): void {
    switch (report.kind) {
      case 'tick':
        this.#tick();
        return;
      case 'connection':
        this.#connection = report.connection;
        if (report.connection.state !== 'open') this.#standing = null;
        return;
      case 'hello':
        this.#vehicle = report.hello.vehicle;
        this.#layOut(report.hello.picture);
        return;
      case 'standing':
        this.#standing = report.standing;
        return;
      case 'telemetry':
        this.#telemetry = report.telemetry;
        this.#telemetryAtMs = nowMs();
        return;
      case 'status':
        this.#status = report.status;
        return;
      case 'snapshot':
        this.#takeSnapshot(report.snapshot);
        return;
      case 'video':
        this.#video = report.video;
        this.#timing.observe(report.video.latency, nowMs());
        return;
    }
  }

  /** The canvas fills its place at the picture's own ratio of sides. */
  #layOut(picture: PictureFormat | null): void {
    if (picture === null) return;
    byId('picture').style.setProperty('--ratio', String(picture.width / picture.height));
    this.#details.showPicture(picture);
  }

  #takeSnapshot(snapshot: SnapshotView): void {
    if (snapshot.end === End.Operator) {
      this.#operatorSnapshot = snapshot;
    } else {
      this.#vehicleSnapshot = snapshot;
      this.#vehicleSnapshotAtMs = nowMs();
    }
  }

  #tick(): void {
    const now = nowMs();
    const seconds = (now - this.#tickedAtMs) / 1000;
    this.#tickedAtMs = now;
    this.#padPanel.observe();
    const reading = this.#pads.read();
    if (reading?.touched === true && this.#seat.released === 'pad gone') this.#seat.takeUp();
    const pad = this.#padPanel.calibrating ? null : reading;
    this.#sent = this.#seat.command({ keys: this.#keyboard.keys(), pad, speedMps: this.#speed(now) }, seconds);
    this.#request({ kind: 'command', command: this.#sent });
  }

  #watchFocus(): void {
    const letGo = (): void => {
      this.#keyboard.releaseAll();
      this.#pads.disarm();
      this.#seat.letGo('unfocused');
    };
    window.addEventListener('blur', letGo);
    window.addEventListener('pagehide', letGo);
    document.addEventListener('visibilitychange', () => {
      if (document.hidden) letGo();
      else if (document.hasFocus()) this.#seat.takeUp();
    });
    window.addEventListener('focus', () => this.#seat.takeUp());
    window.addEventListener('pointerdown', () => this.#seat.takeUp());
    if (!document.hasFocus()) letGo();
  }

  #toggleReverse(): void {
    this.#seat.toggleReverse(this.#speed(nowMs()));
  }

  /** Metres per second; null when telemetry is stale. */
  #speed(now: number): number | null {
    if (this.#telemetry === null || now - this.#telemetryAtMs > STALE_MS) return null;
    return this.#telemetry.speedMps;
  }

  #act(action: Action): void {
    switch (action) {
      case 'ask':
      case 'withdraw':
        this.#request({ kind: 'ask', asks: action === 'ask' });
        return;
      case 'agree':
      case 'refuse': {
        const request = this.#standing?.request;
        if (request != null) this.#request({ kind: 'answer', request: request.number, agrees: action === 'agree' });
        return;
      }
      case 'retry':
        this.#request({ kind: 'reconnect' });
        return;
      case 'release-stop':
        this.#seat.resume();
        return;
      case 'focus':
        window.focus();
        this.#seat.takeUp();
        return;
    }
  }

  #render(): void {
    const now = nowMs();
    const telemetryAgeMs = this.#telemetry === null ? null : now - this.#telemetryAtMs;
    this.#dials.show(this.#telemetry, telemetryAgeMs, this.#sent);
    this.#banner.show({
      canDecode: this.#canDecode,
      connection: this.#connection,
      standing: this.#standing,
      status: this.#status,
      telemetry: this.#telemetry,
      telemetryAgeMs,
      emergencyStop: this.#seat.emergencyStopped,
      release: this.#seat.released,
    });
    this.#header.show(this.#connection, this.#standing, this.#vehicle, this.#status, this.#seat.emergencyStopped);
    const [vehicle, operator] = [this.#vehicleSnapshot, this.#operatorSnapshot];
    if (this.#status !== null) this.#links.show(this.#status, operator, vehicle, now);
    this.#figures.show(vehicle, operator);
    if (this.#video !== null) this.#figures.showVideo(this.#video);
    this.#timing.show(this.#video, now);
    this.#drops.show(operator, vehicle, this.#video);
    this.#counts.show(vehicle, operator, vehicle === null ? null : now - this.#vehicleSnapshotAtMs);
    this.#details.show(this.#status, this.#telemetry, vehicle, operator, this.#video);
    this.#padPanel.show();
  }

  #request(request: PageRequest): void {
    this.#engine.postMessage(request);
  }
}

/** This page's own number, by which it is known again when it connects anew: sixteen hexadecimal digits. */
function consoleId(): string {
  const [id] = crypto.getRandomValues(new BigUint64Array(1));
  return (id! | 1n).toString(16).padStart(16, '0');
}

new Console();

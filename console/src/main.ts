/** Connects the engine (a worker) to the panels, and the operator's input devices to the engine. */
import { type ActsView, UNACKNOWLEDGED_MS } from './acts';
import { nowMs } from './clock';
import { LATE_MS } from './delay';
import { numberingOf } from './input/known';
import { Touch } from './input/touch';
import { Person } from './person';
import type { GuardView } from './guard';
import { End } from './message/end';
import { ActsPanel } from './panel/acts';
import { Banner, STALE_MS, type Action, recorderTrouble } from './panel/banner';
import { Counts } from './panel/counts';
import { AssignPanel, assignedKeys } from './panel/assign';
import { DeclaredPanel, type Asked } from './panel/declared';
import { Dials } from './panel/dials';
import { Drops } from './panel/drops';
import { byId, setData, unfocusClicked } from './panel/element';
import { Details, Figures } from './panel/figures';
import { Fleet } from './panel/fleet';
import { Header } from './panel/header';
import { Help } from './panel/help';
import { Hud, countdownOf } from './panel/hud';
import { Links } from './panel/links';
import { PadPanel } from './panel/pad';
import { Timing } from './panel/timing';
import { Topics } from './panel/topics';
import { TouchPanel } from './panel/touch';
import type {
  Connection, Demand, EngineReport, FleetView, PageRequest, SeenView, SnapshotView, StatusView, TelemetryView, TopicView, VideoView,
} from './report';
import { type Description, NOTHING } from './declared';
import type { Readings } from './description';
import { geometryOf } from './road';
import { Cues, Speaker } from './sound';
import type { PictureFormat, Standing } from './wire';

// People cannot read figures that change faster, and each update costs time.
const RENDER_MS = 100;
// Snapshots come twice a second, on slow links every two seconds. Older ones are shown as unknown.
const SNAPSHOT_STALE_MS = 3_000;
const STATUS_STALE_MS = 1_000;
// The vehicle repeats all readings at least once a second.
const READINGS_STALE_MS = 3_000;
// Age of the picture above which the latency figures are shown as unknown. They cover ten seconds,
// so a single late picture does not blank them.
const LATENCY_STALE_MS = 1_000;

class Console {
  readonly #engine = new Worker(new URL('./engine.ts', import.meta.url), { type: 'module' });
  readonly #id = consoleId();
  readonly #person = new Person(BigInt(`0x${this.#id}`), Math.random(), localStorage, numberingOf(navigator as Parameters<typeof numberingOf>[0]), {
    urgent: () => this.#command(),
    stopAsked: () => {
      this.#render();
      setTimeout(() => this.#render(), UNACKNOWLEDGED_MS);
    },
    help: () => this.#help.toggle(),
  });
  readonly #help = new Help();
  readonly #speaker = new Speaker(window);
  readonly #cues = new Cues();
  readonly #banner = new Banner((action) => this.#act(action));
  readonly #header = new Header(() => this.#person.press('emergency-stop'), () => this.#request({ kind: 'leave' }));
  readonly #fleetPanel = new Fleet((vehicle) => this.#request({ kind: 'pick', vehicle }));
  readonly #acts = new ActsPanel((press) => this.#person.press(press));
  readonly #touch = new TouchPanel(new Touch({ left: byId('touch-left'), right: byId('touch-right') }), () => this.#person.seat.zeroSpeed());
  readonly #hud = new Hud();
  readonly #dials = new Dials();
  readonly #declared = new DeclaredPanel({
    setPosition: (index, position) => this.#person.declared.setPosition(index, position),
    push: (index, share) => this.#person.declared.push(index, share),
    press: (index, isDown) => this.#person.declared.press(index, isDown),
    toggle: (index) => this.#person.ask(index),
    request: (index) => this.#person.ask(index),
  });
  readonly #assign = new AssignPanel(this.#person.bindings, this.#person.pads);
  readonly #links = new Links((link, cut) => this.#request({ kind: 'link', link, cut }));
  readonly #timing = new Timing();
  readonly #figures = new Figures();
  readonly #drops = new Drops();
  readonly #counts = new Counts();
  readonly #topicsPanel = new Topics();
  readonly #details = new Details();
  readonly #padPanel = new PadPanel(this.#person.pads);
  readonly #canDecode = typeof VideoDecoder !== 'undefined';

  #connection: Connection = { state: 'connecting', attempt: 1 };
  #standing: Standing | null = null;
  #vehicle = '';
  #pictureRefusal: string | null = null;
  #aspect = 16 / 9;
  #telemetry: TelemetryView | null = null;
  #telemetryAtMs = 0;
  #status: StatusView | null = null;
  #statusAtMs = 0;
  #operatorSnapshot: SnapshotView | null = null;
  #operatorSnapshotAtMs = 0;
  #vehicleSnapshot: SnapshotView | null = null;
  #vehicleSnapshotAtMs = 0;
  #topics: TopicView[] = [];
  #topicsAtMs = 0;
  /** `null` if the operator's process does not list vehicles. */
  #fleet: FleetView | null = null;
  #video: VideoView | null = null;
  #description: Description | null = null;
  /** Revision of the description that the machine was last known to have; `null` if none. */
  #described: number | null = null;
  #readings: Readings | null = null;
  #readingsAtMs = 0;
  #seen: SeenView | null = null;
  #seenAtMs = 0;
  #sent: Demand = this.#person.command(null, false, 0);
  #tickedAtMs = nowMs();

  constructor() {
    this.#engine.onmessage = (event: MessageEvent<EngineReport>) => this.#receive(event.data);
    const canvas = byId<HTMLCanvasElement>('picture').transferControlToOffscreen();
    // A used address still contains its token. Remove it, so that no other page reads it from the
    // history.
    history.replaceState(null, '', location.pathname);
    const address = new URL(`ws?console=${this.#id}`, location.href);
    address.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
    const session = new URL('session', location.href).href;
    this.#engine.postMessage({ kind: 'start', address: address.href, session, canvas } satisfies PageRequest, [canvas]);
    this.#acts.listen(this.#person.deadMan, this.#person.speed, this.#speaker);
    this.#person.touch = this.#touch.touch;
    const draw = (): void => {
      this.#touch.draw();
      requestAnimationFrame(draw);
    };
    draw();
    this.#watchPresence();
    unfocusClicked();
    // Independent of the worker's ticks: if they stop, the page must show it.
    setInterval(() => this.#render(), RENDER_MS);
  }

  #receive(report: EngineReport): void {
    switch (report.kind) {
      case 'tick':
        this.#look(report.seen);
        this.#command();
        return;
      case 'connection':
        this.#connection = report.connection;
        if (report.connection.state !== 'open') {
          this.#standing = null;
          this.#fleet = null;
          this.#person.succeeds = false;
        }
        return;
      case 'hello':
        this.#vehicle = report.hello.vehicle;
        this.#layOut(report.hello.picture);
        this.#pictureRefusal = report.refusal;
        return;
      case 'standing':
        this.#standing = report.standing;
        this.#person.mayAct = !this.#isChoosing() && report.standing.role !== 'watches';
        this.#person.succeeds = report.standing.role === 'succeeds';
        return;
      case 'telemetry':
        this.#telemetry = report.telemetry;
        this.#telemetryAtMs = nowMs();
        this.#person.observe(report.telemetry, performance.now());
        return;
      case 'status':
        this.#status = report.status;
        this.#statusAtMs = nowMs();
        return;
      case 'snapshot':
        this.#takeSnapshot(report.snapshot);
        return;
      case 'description':
        this.#description = report.description;
        return;
      case 'readings':
        this.#readings = report.readings;
        this.#readingsAtMs = nowMs();
        return;
      case 'topics':
        this.#topics = report.topics;
        this.#topicsAtMs = nowMs();
        return;
      case 'fleet':
        this.#fleet = report.fleet;
        if (report.fleet.picked === null) this.#forgetVehicle();
        this.#person.mayAct = !this.#isChoosing() && this.#standing?.role !== 'watches';
        return;
      case 'video':
        this.#video = report.video;
        this.#timing.observe(this.#isPictureWithin(LATENCY_STALE_MS, nowMs()) ? report.video.latency : null, nowMs());
        return;
    }
  }

  /** Gives the canvas the picture's aspect ratio. */
  #layOut(picture: PictureFormat | null): void {
    if (picture === null) return;
    this.#aspect = picture.width / picture.height;
    byId('stage').style.setProperty('--ratio', String(this.#aspect));
    this.#details.showPicture(picture);
  }

  /** Discards the state of the released vehicle, which says nothing about the next one. */
  #forgetVehicle(): void {
    this.#telemetry = null;
    this.#vehicleSnapshot = null;
    this.#operatorSnapshot = null;
    this.#topics = [];
    this.#description = null;
    this.#described = null;
    this.#readings = null;
    this.#seen = null;
    this.#person.forget();
  }

  /** Returns whether a vehicle has to be picked first. */
  #isChoosing(): boolean {
    return this.#fleet !== null && this.#fleet.picked === null;
  }

  #takeSnapshot(snapshot: SnapshotView): void {
    if (snapshot.end === End.Operator) {
      this.#operatorSnapshot = snapshot;
      this.#operatorSnapshotAtMs = nowMs();
    } else {
      this.#vehicleSnapshot = snapshot;
      this.#vehicleSnapshotAtMs = nowMs();
    }
  }

  /** Handles the newest picture seen. */
  #look(seen: SeenView | null): void {
    if (seen?.picture !== this.#seen?.picture) this.#seenAtMs = nowMs();
    this.#seen = seen;
  }

  /**
   * Returns the age of the newest picture seen, since its capture, or since the page first noticed
   * it while the operator's clock is unknown. Infinity if the capture time is unknown; `null`
   * before the first picture.
   */
  #pictureAgeMs(now: number): number | null {
    return this.#seen === null ? null : Math.max(0, now - (this.#seen.capturedAtMs ?? this.#seenAtMs));
  }

  #isPictureWithin(ageMaxMs: number, now: number): boolean {
    const age = this.#pictureAgeMs(now);
    return this.#connection.state === 'open' && age !== null && age <= ageMaxMs;
  }

  #command(): void {
    const now = nowMs();
    const seconds = (now - this.#tickedAtMs) / 1000;
    this.#tickedAtMs = now;
    this.#padPanel.observe();
    this.#assign.observe(performance.now());
    const live = this.#liveTelemetry(now);
    const moved = live === null ? null : { forward: live.speedMps, sideways: live.sidewaysMps, yawRate: live.yawRate };
    this.#sent = this.#person.command(moved, this.#padPanel.calibrating || this.#assign.capturing, seconds);
    if (!this.#isChoosing()) this.#request({ kind: 'command', command: this.#sent });
  }

  #watchPresence(): void {
    const { presence } = this.#person;
    const leave = (absence: 'hidden' | 'unfocused'): void => {
      this.#person.leave(absence);
      // Send it now: a page that is being frozen gets no further tick.
      this.#command();
    };
    const look = (): void => {
      this.#request({ kind: 'visible', visible: !document.hidden });
      if (document.hidden) leave('hidden');
      else presence.set('hidden', false);
    };
    window.addEventListener('blur', () => leave('unfocused'));
    window.addEventListener('pagehide', () => leave('hidden'));
    window.addEventListener('pageshow', look);
    document.addEventListener('visibilitychange', look);
    document.addEventListener('freeze', () => leave('hidden'));
    document.addEventListener('resume', look);
    for (const name of ['focus', 'pointerdown']) window.addEventListener(name, () => this.#person.takeUp());
    look();
    if (!document.hasFocus()) leave('unfocused');
  }

  /** Returns the telemetry; `null` if it is not live. */
  #liveTelemetry(now: number): TelemetryView | null {
    return this.#live(this.#telemetry, now - this.#telemetryAtMs, STALE_MS);
  }

  #liveStatus(now: number): StatusView | null {
    return this.#live(this.#status, now - this.#statusAtMs, STATUS_STALE_MS);
  }

  #liveVehicle(now: number): SnapshotView | null {
    return this.#live(this.#vehicleSnapshot, now - this.#vehicleSnapshotAtMs, SNAPSHOT_STALE_MS);
  }

  #liveOperator(now: number): SnapshotView | null {
    return this.#live(this.#operatorSnapshot, now - this.#operatorSnapshotAtMs, SNAPSHOT_STALE_MS);
  }

  /** Returns the value, or `null` if it is too old or the connection is lost. */
  #live<T>(told: T | null, ageMs: number, ageMaxMs: number): T | null {
    return this.#connection.state === 'open' && ageMs <= ageMaxMs ? told : null;
  }

  #act(action: Action): void {
    switch (action) {
      case 'ask':
      case 'withdraw':
        this.#request({ kind: 'ask', asks: action === 'ask' });
        return;
      case 'agree':
      case 'refuse': {
        const request = this.#standing?.request ?? this.#standing?.agreed;
        if (request != null) this.#request({ kind: 'answer', request: request.number, agrees: action === 'agree' });
        return;
      }
      case 'retry':
        this.#request({ kind: 'reconnect' });
        return;
      case 'arm':
      case 'reset':
        this.#person.press(action);
        return;
      case 'take-over':
        this.#person.press('arm');
        return;
      case 'check steering':
      case 'steering agrees':
      case 'steering wrong':
      case 'steering unseen':
        this.#person.steering(action);
        return;
      case 'focus':
        window.focus();
        this.#person.takeUp();
        return;
    }
  }

  #render(): void {
    const now = nowMs();
    this.#renderDrive(now);
    if (!document.hidden) this.#renderFigures(now);
  }

  /** Updates what the operator needs for driving. Sounds play on a hidden page too. */
  #renderDrive(now: number): void {
    const live = this.#liveTelemetry(now);
    const acts = this.#person.view(performance.now());
    const guard = live?.guard ?? null;
    const unheard = acts.stopUnacknowledgedMs !== null && acts.stopUnacknowledgedMs >= UNACKNOWLEDGED_MS;
    const expectsNone = this.#connection.state !== 'open' || !this.#sees() || this.#isChoosing();
    const status = this.#liveStatus(now);
    this.#banner.show({
      canDecode: this.#canDecode,
      connection: this.#connection,
      standing: this.#standing,
      choosing: this.#isChoosing(),
      status,
      telemetry: this.#telemetry,
      telemetryAgeMs: this.#telemetry === null ? null : now - this.#telemetryAtMs,
      release: this.#person.seat.released,
      acts,
      padQuiet: acts.padQuiet,
      padTroubled: acts.padTroubled,
      recorderTrouble: recorderTrouble(this.#operatorSnapshot?.values ?? []),
      pictureRefusal: this.#pictureRefusal,
    });
    const { motion, seat, speed } = this.#person;
    setData(document.body, 'motion', motion);
    const declared = this.#person.description;
    this.#help.show(motion, declared === null ? [] : assignedKeys(declared, this.#person.bindings));
    this.#touch.show(motion, speed.mode, guard !== null && this.#sees() && !this.#isChoosing());
    this.#hud.show({
      telemetry: live, gearAsked: seat.gear, setPointMps: seat.setPointMps, pictureAgeMs: this.#pictureAgeMs(now), expectsNone, aspect: this.#aspect,
      geometry: geometryOf(this.#liveVehicle(now)?.values ?? []),
    });
    this.#acts.show(guard);
    this.#showDeclared(guard, acts.request, now);
    this.#fleetPanel.show(this.#fleet, this.#standing?.role === 'drives');
    this.#header.showLeave(this.#fleet, this.#standing, status, live);
    this.#header.show(this.#connection, this.#standing, this.#vehicle, status, live !== null,
      unheard ? 'unheard' : acts.stopAsked ? 'asked' : guard?.latched === true ? 'latched' : 'none');
    const cue = this.#cues.next({
      mode: guard?.mode ?? null,
      stopUnacknowledged: unheard,
      late: !expectsNone && guard !== null && guard.mode !== 'held' && !this.#isPictureWithin(LATE_MS, now),
      refused: acts.last !== null && acts.last.outcome !== 'done',
      countdown: countdownOf(guard) !== null,
      padQuiet: acts.padQuiet !== null,
    }, now);
    if (cue !== null) this.#speaker.play(cue);
  }

  /**
   * Returns what the machine declares; `null` until the description that it has now has arrived.
   * While nothing is known of the machine, its last one stays.
   */
  #describe(guard: GuardView | null): Description | null {
    const revision = guard?.description ?? this.#described;
    this.#described = revision;
    if (revision === 0) return NOTHING;
    return this.#description?.revision === revision ? this.#description : null;
  }

  /** Updates the machine's own controls and values. */
  #showDeclared(guard: GuardView | null, request: ActsView['request'], now: number): void {
    const { declared } = this.#person;
    const description = this.#describe(guard);
    this.#person.describe(description);
    const readings = this.#live(this.#readings, now - this.#readingsAtMs, READINGS_STALE_MS);
    const asked = (index: number): Asked => {
      if (request?.action !== index) return 'none';
      return request.outcome === 'pending' || request.outcome === 'done' ? request.outcome : 'refused';
    };
    this.#declared.show({
      description,
      setPoints: guard?.setPoints ?? [],
      measured: guard?.axes ?? [],
      isOn: (index) => ((guard?.actions ?? 0) >>> index & 1) === 1,
      isWanted: (index) => declared.isOn(index),
      asked,
      reading: (index) => (readings !== null && readings.revision === description?.revision ? readings.readings.get(index) ?? null : null),
      isOnPicture: (slot) => this.#person.bindings.isOnPicture(slot),
      driven: this.#person.drives,
    });
    this.#assign.show(description);
  }

  /** Updates the figures. One that is not live is shown as unknown. */
  #renderFigures(now: number): void {
    const open = this.#connection.state === 'open';
    const [status, vehicle, operator] = [this.#liveStatus(now), this.#liveVehicle(now), this.#liveOperator(now)];
    this.#dials.show(this.#telemetry, open && this.#telemetry !== null ? now - this.#telemetryAtMs : null, this.#sent);
    if (status !== null && operator !== null) this.#links.show(status, operator, vehicle, now);
    else this.#links.fade();
    this.#figures.show(vehicle, operator);
    this.#figures.showVideo(open ? this.#video : null);
    this.#timing.show(this.#isPictureWithin(LATENCY_STALE_MS, now) ? this.#video : null, now);
    this.#drops.show(this.#operatorSnapshot, this.#vehicleSnapshot, this.#video);
    this.#counts.show(this.#vehicleSnapshot, this.#operatorSnapshot,
      this.#vehicleSnapshot === null ? null : now - this.#vehicleSnapshotAtMs);
    const sinceMs = now - this.#topicsAtMs;
    this.#topicsPanel.show(this.#topics, this.#live(sinceMs, sinceMs, SNAPSHOT_STALE_MS));
    this.#details.show(status, this.#liveTelemetry(now), vehicle, operator, this.#video);
    this.#padPanel.show();
  }

  /** Returns whether this console should receive pictures. */
  #sees(): boolean {
    return this.#standing?.role === 'drives' || this.#standing?.role === 'succeeds';
  }

  #request(request: PageRequest): void {
    this.#engine.postMessage(request);
  }
}

/**
 * Returns a random number for this page, as 16 hexadecimal digits. It identifies the page when it
 * reconnects.
 */
function consoleId(): string {
  const [id] = crypto.getRandomValues(new BigUint64Array(1));
  return (id! | 1n).toString(16).padStart(16, '0');
}

// A restarted operator process prints a new address. It differs only after the #, so the browser
// does not reload by itself.
window.addEventListener('hashchange', () => location.reload());
new Console();

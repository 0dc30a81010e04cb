import type { TelemetryView } from '../report';
import { type Bounds, STILL, type Twist } from '../twist';
import { byId, setText } from './element';
import { degrees, mps } from './format';

/** Angle on the ring, from the top, at which a turn at its limit ends. */
const RING_DEGREES = 140;
const RING_RADIUS = 44;
/** Distance from the middle at which a speed at its limit is drawn. */
const FIELD_RADIUS = 30;

/**
 * Motion of a machine that a twist moves: a ring for the turn, and a field for the speeds, forward
 * at the top. White marks are what is requested here, coloured ones what the machine reports.
 */
export class TwistDial {
  readonly #arc = byId<SVGPathElement>('twist-arc');
  readonly #turnSent = byId<SVGGElement>('twist-turn-sent');
  readonly #line = byId<SVGLineElement>('twist-line');
  readonly #dot = byId<SVGCircleElement>('twist-dot');
  readonly #sent = byId<SVGCircleElement>('twist-sent');
  readonly #forward = byId('twist-forward');
  readonly #sideways = byId('twist-sideways');
  readonly #turn = byId('twist-turn');
  readonly #bounds = { forward: byId('twist-forward-bound'), sideways: byId('twist-sideways-bound'), turn: byId('twist-turn-bound') };

  /** `telemetry` is `null` if it is not live; `sent` is `null` for a car. */
  show(telemetry: TelemetryView | null, sent: Twist | null): void {
    const bounds = telemetry?.guard?.bounds ?? null;
    const [forward, sideways, yawRate] = [telemetry?.speedMps ?? null, telemetry?.sidewaysMps ?? null, telemetry?.yawRate ?? null];
    setText(this.#forward, mps(forward));
    setText(this.#sideways, mps(sideways));
    setText(this.#turn, degrees(yawRate));
    setText(this.#bounds.forward, bounds === null ? '' : `of ${mps(bounds.forward)}`);
    setText(this.#bounds.sideways, bounds === null ? '' : `of ${mps(bounds.sideways)}`);
    setText(this.#bounds.turn, bounds === null ? '' : `of ${degrees(bounds.yawRate)}`);
    const [reported, wanted] = [
      place({ forward: forward ?? 0, sideways: sideways ?? 0, yawRate: yawRate ?? 0 }, bounds), place(sent ?? STILL, bounds),
    ];
    this.#arc.setAttribute('d', arc(reported.degrees));
    this.#turnSent.setAttribute('transform', `rotate(${wanted.degrees.toFixed(1)})`);
    for (const [name, value] of [['x2', reported.x], ['y2', reported.y]] as const) this.#line.setAttribute(name, value.toFixed(1));
    for (const [mark, { x, y }] of [[this.#dot, reported], [this.#sent, wanted]] as const) {
      mark.setAttribute('cx', x.toFixed(1));
      mark.setAttribute('cy', y.toFixed(1));
    }
  }
}

/**
 * Returns where a motion is drawn: clockwise degrees of its turn, and the place of its speeds. All
 * are 0 without `bounds`.
 */
export function place(twist: Twist, bounds: Bounds | null): { degrees: number; x: number; y: number } {
  const share = (value: number, bound: number): number => (bound <= 0 ? 0 : Math.max(-1, Math.min(1, value / bound)));
  if (bounds === null) return { degrees: 0, x: 0, y: 0 };
  const [ahead, left, turn] = [
    share(twist.forward, twist.forward < 0 ? bounds.back : bounds.forward), share(twist.sideways, bounds.sideways), share(twist.yawRate, bounds.yawRate),
  ];
  const away = (value: number, by: number): number => (value === 0 ? 0 : -value * by);
  return { degrees: away(turn, RING_DEGREES), x: away(left, FIELD_RADIUS), y: away(ahead, FIELD_RADIUS) };
}

/** Returns an arc along the ring, from the top by `degrees` clockwise. */
function arc(degrees: number): string {
  if (Math.abs(degrees) < 0.5) return '';
  const angle = (degrees * Math.PI) / 180;
  const [x, y] = [RING_RADIUS * Math.sin(angle), -RING_RADIUS * Math.cos(angle)];
  return `M0 -${RING_RADIUS} A${RING_RADIUS} ${RING_RADIUS} 0 0 ${degrees > 0 ? 1 : 0} ${x.toFixed(2)} ${y.toFixed(2)}`;
}

import type { Controlled, TelemetryView } from '../report';
import { STALE_MS } from './banner';
import { byId, setData, setText } from './element';
import { UNKNOWN, signed } from './format';
import { TwistDial } from './twist-dial';

// Rotation of the drawn steering wheel at full lock.
const WHEEL_DEGREES = 130;
// Angle of the road wheels at which the bar reaches its end. They rarely turn further.
const ROAD_WHEEL_DEGREES = 32;

/**
 * Steering wheel and pedals, as requested and as applied; of a machine that a twist moves, its
 * motion.
 */
export class Dials {
  readonly #card = byId('steering').closest<HTMLElement>('.card')!;
  readonly #age = byId('telemetry-age');
  readonly #wheel = byId<SVGGElement>('wheel-turn');
  readonly #arc = byId<SVGPathElement>('wheel-arc');
  readonly #steering = byId('steering');
  readonly #steerFill = byId('steer-fill');
  readonly #steerSent = byId('steer-sent');
  readonly #charge = byId('charge');
  readonly #throttle = pedal('throttle');
  readonly #brake = pedal('brake');
  readonly #twist = new TwistDial();

  show(telemetry: TelemetryView | null, ageMs: number | null, sent: Controlled): void {
    const stale = ageMs === null || ageMs > STALE_MS;
    setData(this.#card, 'stale', String(stale));
    setData(this.#age, 'stale', String(stale && ageMs !== null));
    setText(this.#age, ageText(ageMs, stale));
    const live = stale ? null : telemetry;
    this.#turn(sent.steering);
    this.#throttle.sent(sent.throttle);
    this.#brake.sent(sent.brake);
    this.#showSteering(live?.steeringAngleRad ?? null);
    setText(this.#charge, live?.told.charge?.toFixed(0) ?? UNKNOWN);
    this.#throttle.applied(live?.throttle ?? null);
    this.#brake.applied(live?.brake ?? null);
    this.#twist.show(live, sent.twist);
  }

  #showSteering(angleRad: number | null): void {
    const degrees = ((angleRad ?? 0) * 180) / Math.PI;
    setText(this.#steering, angleRad === null ? UNKNOWN : signed(degrees, 1));
    const share = Math.max(-1, Math.min(1, degrees / ROAD_WHEEL_DEGREES));
    this.#steerFill.style.transform = `scaleX(${(-share).toFixed(3)})`;
  }

  /**
   * Turns the drawn steering wheel. Left is positive in a command and counterclockwise on the
   * screen.
   */
  #turn(steering: number): void {
    const degrees = -steering * WHEEL_DEGREES;
    this.#wheel.setAttribute('transform', `rotate(${degrees.toFixed(1)})`);
    this.#arc.setAttribute('d', arc(degrees));
    this.#steerSent.style.left = `${(50 - steering * 50).toFixed(1)}%`;
  }
}

function pedal(name: 'throttle' | 'brake'): { sent(share: number): void; applied(share: number | null): void } {
  const text = byId(name);
  const fill = byId(`${name}-bar`);
  const mark = byId(`${name}-sent`);
  return {
    sent: (share) => {
      mark.style.transform = `translateY(${((1 - share) * 100).toFixed(1)}%)`;
    },
    applied: (share) => {
      fill.style.transform = `scaleY(${Math.min(1, Math.max(0, share ?? 0)).toFixed(3)})`;
      setText(text, share === null ? UNKNOWN : (share * 100).toFixed(0));
    },
  };
}

function ageText(ageMs: number | null, stale: boolean): string {
  if (ageMs === null) return `no telemetry ${UNKNOWN}`;
  return stale ? `stale: ${(ageMs / 1000).toFixed(1)} s old` : 'telemetry live';
}

/** Returns an arc along the wheel's rim, from the top by `degrees` clockwise. */
function arc(degrees: number): string {
  if (Math.abs(degrees) < 0.5) return '';
  const angle = (degrees * Math.PI) / 180;
  const [x, y] = [46 * Math.sin(angle), -46 * Math.cos(angle)];
  return `M0 -46 A46 46 0 0 ${degrees > 0 ? 1 : 0} ${x.toFixed(2)} ${y.toFixed(2)}`;
}

/**
 * Devices whose axes are known by vendor and product, taken from their HID descriptors.
 *
 * A row names the usages that a device reports, and which of them are throttle and brake; x is the
 * steering. The platform decides their numbers in the Gamepad API. Chromium on Linux numbers the
 * existing axes in the order of the kernel's codes (joydev). On Windows an axis has the number of
 * its usage, with gaps. Other browsers number differently; there a wheel has to be calibrated. A
 * device with another number of axes than its row is in an unknown mode (combined pedals, another
 * driver) and is treated as unknown.
 */
import type { Motion } from '../generated/kinds';
import { BUTTONS, type Mapping, type PadState, WHEEL_DEAD_ZONE, standardMapping } from './mapping';

/** Axis usages of HID's Generic Desktop page, in the order of that page and of the kernel. */
const USAGES = ['x', 'y', 'z', 'rx', 'ry', 'rz', 'slider', 'dial', 'wheel', 'hat'] as const;
type Usage = (typeof USAGES)[number];

/**
 * Numbering of axes by the browser: only the existing ones (`packed`), or with gaps (`by usage`);
 * `null` if unknown.
 */
export type Numbering = 'packed' | 'by usage' | null;

interface Wheel {
  vendor: number;
  products: readonly number[];
  axes: readonly Usage[];
  throttle: Usage;
  brake: Usage;
  /** Numberings for which the row is known to be right. */
  on: readonly Exclude<Numbering, null>[];
}

const LOGITECH = 0x046d;
const THRUSTMASTER = 0x044f;
const FANATEC = 0x0eb7;
const LOGITECH_AXES: readonly Usage[] = ['x', 'y', 'z', 'rz', 'hat'];

/** Known wheels. They steer by x; their pedals rest at 1 and end at -1. Sources: decision 75. */
const WHEELS: readonly Wheel[] = [
  // G25, G27. Under Windows their driver combines the pedals on one axis by default.
  { vendor: LOGITECH, products: [0xc299, 0xc29b], axes: LOGITECH_AXES, throttle: 'z', brake: 'rz', on: ['packed'] },
  // G29; G923 for PlayStation.
  { vendor: LOGITECH, products: [0xc24f], axes: LOGITECH_AXES, throttle: 'z', brake: 'rz', on: ['packed', 'by usage'] },
  { vendor: LOGITECH, products: [0xc266], axes: LOGITECH_AXES, throttle: 'z', brake: 'rz', on: ['packed'] },
  // G920; G923 for Xbox.
  { vendor: LOGITECH, products: [0xc262], axes: LOGITECH_AXES, throttle: 'y', brake: 'z', on: ['packed', 'by usage'] },
  { vendor: LOGITECH, products: [0xc26e], axes: LOGITECH_AXES, throttle: 'y', brake: 'z', on: ['packed'] },
  // T150, TMX, T248. Not T300: its throttle axis depends on the driver.
  {
    vendor: THRUSTMASTER, products: [0xb677, 0xb67f, 0xb696], axes: ['x', 'y', 'rz', 'slider', 'hat'], throttle: 'rz', brake: 'y',
    on: ['packed'],
  },
  // CSW 2.5, CSL Elite, Podium DD1 and DD2, CSL DD, in PC mode.
  {
    vendor: FANATEC, products: [0x0004, 0x0005, 0x0006, 0x0007, 0x0020, 0x0e03],
    axes: ['x', 'y', 'z', 'rx', 'ry', 'rz', 'slider', 'dial', 'hat'], throttle: 'z', brake: 'rz', on: ['packed'],
  },
];

/**
 * Remote-control transmitters with OpenTX or EdgeTX. The model selected on the radio assigns its
 * levers to channels.
 */
const RADIOS: readonly { vendor: number; product: number }[] = [{ vendor: 0x1209, product: 0x4f54 }];

/**
 * Returns the mapping of a device that needs no calibration, for this kind of machine; `null` if
 * the device is unknown.
 */
export function knownMapping(pad: PadState, numbering: Numbering, motion: Motion = 'ackermann'): Mapping | null {
  if (pad.mapping === 'standard') return standardMapping(motion);
  const id = vendorAndProduct(pad.id);
  if (id === null || numbering === null) return null;
  const wheel = WHEELS.find(({ vendor, products, on }) => vendor === id.vendor && products.includes(id.product) && on.includes(numbering));
  if (wheel === undefined || pad.axes.length !== axisCount(wheel.axes, numbering)) return null;
  const pedal = (usage: Usage): Mapping['throttle'] => ({
    kind: 'axis', axis: axisNumber(usage, wheel.axes, numbering), released: 1, pressed: -1,
  });
  return {
    ...BUTTONS,
    steering: { axis: axisNumber('x', wheel.axes, numbering), left: -1, centre: 0, right: 1 },
    throttle: pedal(wheel.throttle),
    brake: pedal(wheel.brake),
    speed: null,
    sideways: null,
    deadZone: WHEEL_DEAD_ZONE,
  };
}

/** Returns whether the device is a radio, whose levers the operator has assigned on the radio. */
export function isRadio(id: string): boolean {
  const found = vendorAndProduct(id);
  return found !== null && RADIOS.some(({ vendor, product }) => vendor === found.vendor && product === found.product);
}

/**
 * Reads vendor and product from an id: Chromium's `(.. Vendor: 046d Product: c24f)`, Firefox's
 * `046d-c24f-name`. `null` if it has neither form.
 */
export function vendorAndProduct(id: string): { vendor: number; product: number } | null {
  const found = /Vendor: ([0-9a-f]{4}) Product: ([0-9a-f]{4})/i.exec(id) ?? /^([0-9a-f]{1,4})-([0-9a-f]{1,4})-/i.exec(id);
  return found === null ? null : { vendor: Number.parseInt(found[1]!, 16), product: Number.parseInt(found[2]!, 16) };
}

/** Returns a device's name without the numbers that the browser adds. */
export function nameOf(id: string): string {
  const name = id.replace(/\s*\((?:[^()]*\bVendor: [^()]*|STANDARD GAMEPAD|XInput [^()]*)\)\s*$/i, '')
    .replace(/^[0-9a-f]{1,4}-[0-9a-f]{1,4}-/i, '').trim();
  return name === '' ? 'Unnamed device' : name;
}

/** Returns how this browser numbers axes. */
export function numberingOf(agent: { userAgentData?: { platform: string; brands: readonly { brand: string }[] } }): Numbering {
  const data = agent.userAgentData;
  if (data === undefined || !data.brands.some(({ brand }) => brand === 'Chromium')) return null;
  return data.platform === 'Linux' ? 'packed' : data.platform === 'Windows' ? 'by usage' : null;
}

/**
 * Returns the number of axes that the browser shows. A hat is two axes in the kernel and one on
 * Windows.
 */
function axisCount(axes: readonly Usage[], numbering: Exclude<Numbering, null>): number {
  if (numbering === 'packed') return axes.length + (axes.includes('hat') ? 1 : 0);
  return Math.max(...axes.map((usage) => USAGES.indexOf(usage))) + 1;
}

/** Returns the browser's number of an axis. */
function axisNumber(usage: Usage, axes: readonly Usage[], numbering: Exclude<Numbering, null>): number {
  return numbering === 'packed' ? axes.indexOf(usage) : USAGES.indexOf(usage);
}

import { describe, expect, it } from 'vitest';
import { isRadio, knownMapping, nameOf, numberingOf, vendorAndProduct } from './known';
import { type PadState, STANDARD, apply } from './mapping';
import { REST } from './ramp';

function padOf(id: string, axes: number[], mapping = ''): PadState {
  return { id, index: 0, mapping, axes, buttons: [] };
}

const G29 = 'Logitech G29 Driving Force Racing Wheel (Vendor: 046d Product: c24f)';
const G920 = 'G920 Driving Force Racing Wheel for Xbox One (Vendor: 046d Product: c262)';
const TMX = 'Thrustmaster TMX Racing Wheel (Vendor: 044f Product: b67f)';

describe('a wheel with three pedals and a hat on Linux', () => {
  const drive = (axes: number[]) => {
    const pad = padOf(G29, axes);
    return apply(knownMapping(pad, 'packed')!, pad);
  };

  it('has its brake on the fourth axis, where the axis count alone would suggest the hat', () => {
    expect(drive([0, 1, 1, 1, 0, 0])).toEqual(REST);
    expect(drive([0, 1, 1, -1, 0, 0])).toEqual({ ...REST, brake: 1 });
    expect(drive([-1, 1, -1, 1, 0, 0])).toEqual({ ...REST, steering: 1, throttle: 1 });
  });

  it('uses neither the clutch nor the hat as a pedal', () => {
    expect(drive([0, -1, 1, 1, -1, 1])).toEqual(REST);
  });
});

describe('known devices', () => {
  const pedals = (id: string, axisCount: number, numbering: 'packed' | 'by usage') => {
    const mapping = knownMapping(padOf(id, Array<number>(axisCount).fill(0)), numbering);
    const axis = (pedal: unknown) => (pedal as { axis: number }).axis;
    return mapping === null ? null : [axis(mapping.throttle), axis(mapping.brake)];
  };

  it('have the axis numbers of their usages on the platform', () => {
    expect([pedals(G29, 6, 'packed'), pedals(G29, 10, 'by usage')]).toEqual([[2, 3], [2, 5]]);
    expect([pedals(G920, 6, 'packed'), pedals(G920, 10, 'by usage')]).toEqual([[1, 2], [1, 2]]);
    expect(pedals(TMX, 6, 'packed')).toEqual([2, 1]);
    expect(pedals('Fanatec FANATEC Wheel (Vendor: 0eb7 Product: 0020)', 10, 'packed')).toEqual([2, 5]);
  });

  it('are unknown in a mode with another axis count, or on an unknown platform', () => {
    expect([pedals(G29, 5, 'packed'), pedals(G29, 6, 'by usage'), pedals(TMX, 10, 'by usage')]).toEqual([null, null, null]);
    expect(knownMapping(padOf(G29, [0, 0, 0, 0, 0, 0]), null)).toBeNull();
  });

  it('include standard pads in every browser', () => {
    expect(knownMapping(padOf('046d-c21d-Logitech F310', [0, 0, 0, 0], 'standard'), null)).toBe(STANDARD);
  });

  it('exclude undescribed ones, whatever their axes', () => {
    for (const count of [2, 4, 6, 8]) {
      expect(knownMapping(padOf('No Name (Vendor: dead Product: beef)', Array<number>(count).fill(1)), 'packed')).toBeNull();
    }
  });

  it('exclude radios, whose levers the person assigns', () => {
    const radio = 'OpenTX Radiomaster TX16S Joystick (Vendor: 1209 Product: 4f54)';
    expect(isRadio(radio)).toBe(true);
    expect(isRadio(G29)).toBe(false);
    // Throttle at its lower end, everything else centred: as pedals, it would be a throttle and a
    // brake of 1.
    expect(knownMapping(padOf(radio, [0, 0, -1, 0, 0, 0, -1, -1]), 'packed')).toBeNull();
  });
});

describe('an id', () => {
  it.each([
    [G29, 0x046d, 0xc24f, 'Logitech G29 Driving Force Racing Wheel'],
    ['46d-c24f-G29 Driving Force Racing Wheel', 0x046d, 0xc24f, 'G29 Driving Force Racing Wheel'],
    ['Xbox Wireless Controller (STANDARD GAMEPAD Vendor: 045e Product: 02fd)', 0x045e, 0x02fd, 'Xbox Wireless Controller'],
  ])('has numbers and a name: %s', (id, vendor, product, name) => {
    expect(vendorAndProduct(id)).toEqual({ vendor, product });
    expect(nameOf(id)).toBe(name);
  });

  it('may lack USB numbers or a name', () => {
    expect(vendorAndProduct('Xbox 360 Controller (XInput STANDARD GAMEPAD)')).toBeNull();
    expect([nameOf('Xbox 360 Controller (XInput STANDARD GAMEPAD)'), nameOf('')]).toEqual(['Xbox 360 Controller', 'Unnamed device']);
  });
});

describe('numberingOf', () => {
  const agent = (platform: string, brand = 'Chromium') => ({ userAgentData: { platform, brands: [{ brand }] } });

  it('is known only for Chromium', () => {
    expect([agent('Linux'), agent('Windows'), agent('macOS'), agent('Linux', 'Other'), {}].map(numberingOf))
      .toEqual(['packed', 'by usage', null, null, null]);
  });
});

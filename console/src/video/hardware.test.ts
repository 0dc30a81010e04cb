import { describe, expect, it } from 'vitest';
import { decodesByHardware } from './hardware';

/** Returns a browser that supports what `supports` accepts. */
function browser(supports: (config: VideoDecoderConfig) => boolean): Pick<typeof VideoDecoder, 'isConfigSupported'> {
  return { isConfigSupported: (config) => Promise.resolve({ supported: supports(config), config }) };
}

describe('how a browser decodes', () => {
  it('is what it reports for the strips at hand', async () => {
    const asked: VideoDecoderConfig[] = [];
    const picture = { width: 640, height: 480, strips: [[0, 80], [80, 80]] as [number, number][], codec: 'avc1.42c01f' };
    const hardware = browser((config) => asked.push(config) > 0);
    expect(await decodesByHardware(picture, hardware)).toBe(true);
    expect(asked.at(-1)).toMatchObject({ codec: 'avc1.42c01f', codedWidth: 640, codedHeight: 80, hardwareAcceleration: 'prefer-hardware' });
    expect(await decodesByHardware(null, browser((config) => config.hardwareAcceleration === undefined))).toBe(false);
  });

  it('is unknown without a decoder, if it cannot decode them, or if it fails', async () => {
    const fails = { isConfigSupported: () => Promise.reject(new TypeError('no codec')) };
    expect(await decodesByHardware(null, undefined)).toBeNull();
    expect(await decodesByHardware(null, browser(() => false))).toBeNull();
    expect(await decodesByHardware(null, fails)).toBeNull();
  });
});

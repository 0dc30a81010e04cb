import { describe, expect, it } from 'vitest';
import { pixelsShown, refusalOf } from './limits';

/** Returns a browser that supports what `supports` accepts. */
function browser(supports: (config: VideoDecoderConfig) => boolean): Pick<typeof VideoDecoder, 'isConfigSupported'> {
  return { isConfigSupported: (config) => Promise.resolve({ supported: supports(config), config }) };
}

describe('the largest picture of a browser', () => {
  it('is the largest size that it decodes, large ones only in hardware', async () => {
    expect(await pixelsShown(browser(() => true))).toBe(4096 * 2304);
    expect(await pixelsShown(browser((config) => config.hardwareAcceleration === undefined))).toBe(1920 * 1080);
    expect(await pixelsShown(browser((config) => config.codedWidth! <= 2560))).toBe(2560 * 1440);
    expect(await pixelsShown(browser((config) => config.codedWidth! <= 1280))).toBe(1280 * 720);
  });

  it('is unknown without a decoder, if it decodes none, or if it fails', async () => {
    expect(await pixelsShown(undefined)).toBeNull();
    expect(await pixelsShown(browser(() => false))).toBeNull();
    expect(await pixelsShown({ isConfigSupported: () => Promise.reject(new TypeError('no codec')) })).toBeNull();
  });
});

describe('a picture', () => {
  const of = (width: number, height: number) => ({ width, height, strips: [], codec: 'avc1.42c01f' });

  it('is refused with a text if it would block the page', () => {
    expect(refusalOf(of(7680, 4320))).toContain('7680x4320');
    for (const [width, height] of [[3840, 2160], [4096, 2304], [336, 96]] as const) expect(refusalOf(of(width, height))).toBeNull();
  });
});

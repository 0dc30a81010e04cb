import { describe, expect, it } from 'vitest';
import type { Standing } from '../wire';
import { whoWords } from './who';

const WATCHES: Standing = {
  role: 'waits', holder: { address: '10.0.0.7', sinceUnixMs: 0 }, operator: { name: 'anna', key: '3f2a9c0d11' }, watching: [],
  request: null, agreed: null, reason: null,
};

describe('who drives', () => {
  it('is shown to others by name, key and address, with the other consoles', () => {
    expect(whoWords(WATCHES)).toBe('anna (3f2a9c0d) drives from 10.0.0.7');
    const told = whoWords({ ...WATCHES, watching: ['10.0.0.8', '10.0.0.9'] });
    expect(told).toBe('anna (3f2a9c0d) drives from 10.0.0.7; 2 more: 10.0.0.8, 10.0.0.9');
  });

  it('is shown to the driver with the others', () => {
    const drives: Standing = { ...WATCHES, role: 'drives' };
    expect(whoWords(drives)).toBe('you drive as anna (3f2a9c0d)');
    expect(whoWords({ ...drives, watching: ['10.0.0.8'] })).toBe('you drive as anna (3f2a9c0d); 1 more: 10.0.0.8');
  });

  it('is nobody, or unknown', () => {
    expect(whoWords({ ...WATCHES, holder: null })).toBe('nobody drives');
    expect(whoWords({ ...WATCHES, operator: null })).toBe('another console drives from 10.0.0.7');
    expect(whoWords(null)).toBe('–');
  });
});

import { describe, expect, it } from 'vitest';
import type { TopicView } from '../report';
import { topicWords } from './topics';

const scan: TopicView = {
  channel: 16, topic: '/scan', encoding: 'json', schema: 'Scan', newest: { ageMs: 250, bytes: 1_200, text: '{}' },
};

describe('a topic of another program', () => {
  it('is shown with its newest unit, whatever it is', () => {
    expect(topicWords(scan, 100)).toBe('json Scan, 1,200 B, 0.3 s old');
    expect(topicWords({ ...scan, encoding: '', schema: '' }, 0)).toBe('encoding not declared, 1,200 B, 0.3 s old');
  });

  it('is shown as unknown without a unit or when not live', () => {
    expect([topicWords({ ...scan, newest: null }, 0), topicWords(scan, null)]).toEqual(['json Scan, no unit yet', 'json Scan, –']);
  });
});

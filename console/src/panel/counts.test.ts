import { describe, expect, it } from 'vitest';
import { End } from '../message/end';
import { LinkState } from '../message/link-state';
import { UnitClass } from '../message/unit-class';
import type { ClassSurveyView, LinkSurveyView, SurveyView } from '../report';
import { type Line, linkLines, unitLines } from './counts';

const NO_PACKETS = { given: 0, again: 0, dropped: 0, withdrawn: 0, sent: 0, inTime: 0, late: 0, lost: 0 };

function link(number: number, change: Partial<LinkSurveyView> = {}): LinkSurveyView {
  return {
    link: number, state: LinkState.Up, datagramBytes: 1200, budgetBps: 3e6, grantedBps: 4.2e6, sentBps: 2.9e6,
    incomingBps: 0.21e6, rttMs: 48, owdOut: { p50: 24.4, p95: 61, p99: 104 }, owdIn: null, lossOut: 0.0125, lossIn: 0,
    queuedBytes: 1500, inFlightBytes: 23_400, datagramsSent: 71_000, datagramsReceived: 9_000, packets: NO_PACKETS,
    ...change,
  };
}

function units(unitClass: UnitClass, change: Partial<ClassSurveyView['units']>): ClassSurveyView {
  const none = {
    offered: 0, accepted: 0, refusedNoLink: 0, refusedInvalid: 0, refusedCongested: 0, heard: 0, delivered: 0,
    repaired: 0, missing: 0, incomplete: 0, late: 0, evicted: 0, malformed: 0, superseded: 0,
  };
  return { class: unitClass, units: { ...none, ...change } };
}

function survey(end: End, links: LinkSurveyView[], classes: ClassSurveyView[] = []): SurveyView {
  return { end, links, classes };
}

const cells = (lines: Line[], name: string): string[] | undefined => lines.find((line) => line.name === name)?.cells;

describe('lines of links', () => {
  it('have what the sender counts, and what arrives by the receiver of the same number', () => {
    const vehicle = survey(End.Vehicle, [link(0), link(3, { owdOut: null })]);
    const operator = survey(End.Operator, [link(3, { incomingBps: 2.8e6, datagramsReceived: 70_900 })]);
    const lines = linkLines(vehicle, operator);
    expect(cells(lines, 'sent')).toEqual(['2.9', '2.9']);
    expect(cells(lines, 'arriving')).toEqual(['–', '2.8']);
    expect(cells(lines, 'received')).toEqual(['–', '70,900']);
    expect(cells(lines, 'one way')).toEqual(['24/61/104', '–']);
    expect(cells(lines, 'lost')).toEqual(['1.3', '1.3']);
    expect(cells(lines, 'packet size')).toEqual(['1200', '1200']);
  });

  it('tell of packets only what has happened to any', () => {
    const idle = linkLines(survey(End.Operator, [link(0), link(1)]), null);
    expect(cells(idle, 'packets given')).toBeUndefined();
    const busy = linkLines(survey(End.Vehicle, [link(0), link(1, { packets: { ...NO_PACKETS, given: 12, late: 2 } })]), null);
    expect(cells(busy, 'packets given')).toEqual(['0', '12']);
    expect(cells(busy, 'late')).toEqual(['0', '2']);
    expect(cells(busy, 'withdrawn')).toBeUndefined();
    expect(busy.filter((line) => line.starts).map((line) => line.name)).toEqual(['packets given']);
  });
});

describe('lines of units', () => {
  const vehicle = survey(End.Vehicle, [], [
    units(UnitClass.Control, { offered: 200, accepted: 200, delivered: 480, superseded: 3 }),
    units(UnitClass.Media, { offered: 3600, accepted: 3590, refusedCongested: 10 })]);
  const operator = survey(End.Operator, [], [
    units(UnitClass.Control, { offered: 500, accepted: 500, delivered: 199 }),
    units(UnitClass.Media, { delivered: 3580, repaired: 41, late: 4, incomplete: 6 })]);

  it('put a sender\'s counts beside the receiver\'s: video, telemetry, commands', () => {
    const lines = unitLines(vehicle, operator);
    expect(cells(lines, 'offered')).toEqual(['3,600', '200', '500']);
    expect(cells(lines, 'complete')).toEqual(['3,580', '199', '480']);
    expect(cells(lines, 'refused: congested')).toEqual(['10', '0', '0']);
    expect(cells(lines, 'lost: incomplete')).toEqual(['6', '0', '0']);
    expect(cells(lines, 'superseded')).toEqual(['0', '0', '3']);
  });

  it('leave out reasons that never were, but not that nothing was late', () => {
    const lines = unitLines(vehicle, survey(End.Operator, []));
    expect(cells(lines, 'lost: evicted')).toBeUndefined();
    expect(cells(lines, 'late')).toEqual(['–', '–', '0']);
  });
});

import { Builder } from 'flatbuffers';
import { describe, expect, it } from 'vitest';
import { ClassSurvey } from './message/class-survey';
import { Delays } from './message/delays';
import { End } from './message/end';
import { LinkState } from './message/link-state';
import { LinkSurvey } from './message/link-survey';
import { Survey } from './message/survey';
import { UnitClass } from './message/unit-class';
import { readSurvey } from './reading';
import { BadMessage, FROM_OPERATOR } from './wire';

function surveyMessage({ classes = 1, end = End.Vehicle }: { classes?: number; end?: End } = {}): ArrayBuffer {
  const builder = new Builder(512);
  LinkSurvey.startLinkSurvey(builder);
  LinkSurvey.addLink(builder, 3);
  LinkSurvey.addState(builder, LinkState.Up);
  LinkSurvey.addDatagramBytes(builder, 1452);
  LinkSurvey.addSentBps(builder, 2_900_000n);
  LinkSurvey.addOwdOut(builder, Delays.createDelays(builder, 24, 61, 104));
  LinkSurvey.addLossOut(builder, 0.125);
  LinkSurvey.addPacketsLate(builder, 7n);
  const link = LinkSurvey.endLinkSurvey(builder);
  const units = Array.from({ length: classes }, () => {
    ClassSurvey.startClassSurvey(builder);
    ClassSurvey.addUnitClass(builder, UnitClass.Media);
    ClassSurvey.addOffered(builder, 3_600n);
    return ClassSurvey.endClassSurvey(builder);
  });
  const links = Survey.createLinksVector(builder, [link]);
  const vector = Survey.createClassesVector(builder, units);
  Survey.finishSurveyBuffer(builder, Survey.createSurvey(builder, end, links, vector));
  const bytes = builder.asUint8Array();
  const message = new Uint8Array(1 + bytes.length);
  message[0] = FROM_OPERATOR.survey;
  message.set(bytes, 1);
  return message.buffer;
}

describe('readSurvey', () => {
  it('copies what is told and knows what is not', () => {
    const survey = readSurvey(surveyMessage());
    expect([survey.end, survey.links.length, survey.classes.length]).toEqual([End.Vehicle, 1, 1]);
    const link = survey.links[0]!;
    expect(link).toMatchObject({ link: 3, state: LinkState.Up, datagramBytes: 1452, sentBps: 2.9e6, lossOut: 0.125 });
    expect([link.owdOut, link.owdIn, link.rttMs]).toEqual([{ p50: 24, p95: 61, p99: 104 }, null, null]);
    expect([link.packets.late, link.packets.lost]).toEqual([7, 0]);
    expect(survey.classes[0]).toMatchObject({ class: UnitClass.Media, units: { offered: 3600, accepted: 0 } });
  });

  it('refuses what no survey says', () => {
    expect(() => readSurvey(surveyMessage({ classes: 3 }))).toThrow(BadMessage);
    expect(() => readSurvey(surveyMessage({ end: 9 as End }))).toThrow(BadMessage);
  });

  it('throws nothing but errors on a message with any byte changed', () => {
    const whole = surveyMessage();
    for (let at = 0; at < whole.byteLength; at += 1) {
      for (const value of [0x00, 0x7f, 0x80, 0xff]) {
        const message = whole.slice(0);
        new Uint8Array(message)[at] = value;
        try {
          readSurvey(message);
        } catch (error) {
          expect(error).toBeInstanceOf(Error);
        }
      }
    }
  });
});

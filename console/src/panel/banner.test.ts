import { describe, expect, it } from 'vitest';
import { SessionState } from '../message/session-state';
import type { StatusView, TelemetryView } from '../report';
import { type Facts, noticeOf, recorderTrouble } from './banner';

const SILENT = { guard: null, modeReason: '' } as unknown as TelemetryView;
const DRIVING = { guard: { mode: 'driving', blackBox: 'records' }, sight: [] as string[], modeReason: '' } as unknown as TelemetryView;
const ESTABLISHED = { sessionState: SessionState.Established } as unknown as StatusView;

/** Facts while a vehicle is driven from this page. */
const FACTS: Facts = {
  canDecode: true, connection: { state: 'open' },
  standing: { role: 'drives', holder: null, operator: null, watching: [], request: null, agreed: null, reason: null },
  status: ESTABLISHED, telemetry: SILENT, telemetryAgeMs: 20, release: 'none', choosing: false,
  acts: { pending: null, last: null, request: null, steeringShown: false, stopUnacknowledgedMs: null }, padQuiet: null, padTroubled: null, recorderTrouble: '', pictureRefusal: null,
};

describe('the list of vehicles', () => {
  it('replaces other notices, except another driver or a lost operator', () => {
    const choosing: Facts = { ...FACTS, choosing: true, telemetry: null, telemetryAgeMs: null };
    expect(noticeOf(choosing)).toBeNull();
    const watches: Facts = { ...choosing, standing: { ...FACTS.standing!, role: 'waits' } };
    expect(noticeOf(watches)?.title).toBe('Nobody drives');
    expect(noticeOf({ ...choosing, connection: { state: 'connecting', attempt: 2 } })?.title).toBe('Connecting');
  });
});

describe('a picture source with a fault', () => {
  const trouble = 'the camera /dev/video0 delivered a damaged picture: a JPEG of 900 bytes';
  const told = (guard: object): Facts => ({ ...FACTS, telemetry: { guard: { blackBox: 'records', ...guard }, sight: [], sourceTrouble: trouble, modeReason: '' } as unknown as TelemetryView });

  it('is shown with its cause while driving, and after what holds the vehicle', () => {
    const driving = noticeOf(told({ mode: 'driving' }));
    expect(driving).toEqual({ tone: 'warn', title: 'Problem with the picture', detail: `T${trouble.slice(1)}.` });
    const armed = noticeOf(told({ mode: 'armed' }));
    expect([armed?.title, armed?.detail]).toEqual(['Armed', `Press the throttle to drive. T${trouble.slice(1)}.`]);
  });

  it('yields to the reason why this page shows no picture', () => {
    const refused = noticeOf({ ...told({ mode: 'driving' }), pictureRefusal: 'Pictures of 7680x4320 are too much.' });
    expect(refused?.detail).toBe('Pictures of 7680x4320 are too much.');
  });
});

describe('a refused takeover', () => {
  it('is shown with its reason, and can be repeated', () => {
    const holder = { address: '10.0.0.7', sinceUnixMs: 0 } as NonNullable<Facts['standing']>['holder'];
    const succeeds: Facts = { ...FACTS, standing: { ...FACTS.standing!, role: 'succeeds', holder } };
    expect(noticeOf(succeeds)?.title).toBe('Take over');
    const refused = noticeOf({ ...succeeds, acts: { ...FACTS.acts, last: { kind: 'take over', outcome: 'stale act' } } });
    expect([refused?.title, refused?.detail, refused?.action?.name]).toEqual(['Not taken over', expect.stringContaining('again'), 'take-over']);
  });
});

describe('a refused request', () => {
  const told = (mode: string, kind: string): Facts => ({
    ...FACTS, acts: { ...FACTS.acts, last: { kind, outcome: 'machine refused' } } as Facts['acts'],
    telemetry: { guard: { blackBox: 'records', mode }, sight: [], sourceTrouble: '', modeReason: '' } as unknown as TelemetryView,
  });

  it('is shown with its reason while the machine is armed or driven', () => {
    for (const mode of ['armed', 'driving', 'limited']) {
      const { title, detail } = noticeOf(told(mode, 'request'))!;
      expect([title, detail]).toEqual(['Request not accepted', 'The machine refused.']);
    }
  });

  it('is not shown of an arming that came too late', () => {
    expect(noticeOf(told('driving', 'arm'))).toBeNull();
  });
});

describe('an operator that does not record', () => {
  it('is shown with the cause from its snapshot if nothing is worse', () => {
    const values = [{ name: 'slices shown', number: 7, unit: '', total: true }, { name: 'recording stands still: disk full', number: 1, unit: '', total: false }];
    expect(recorderTrouble(values)).toBe('disk full');
    expect(recorderTrouble(values.slice(0, 1))).toBe('');
    const full: Facts = { ...FACTS, recorderTrouble: 'disk full', telemetry: DRIVING };
    expect(noticeOf(full)?.title).toBe('The operator does not record: disk full');
    expect(noticeOf({ ...full, recorderTrouble: '' })).toBeNull();
  });
});

describe('the state of the pictures', () => {
  const showing = (...sight: string[]): Facts => ({ ...FACTS, telemetry: { ...DRIVING, sight } as unknown as TelemetryView });
  it('is shown if nothing is worse, the worst first', () => {
    const title = (...sight: string[]) => noticeOf(showing(...sight))?.title;
    expect(title('drawn')).toBeUndefined();
    expect(title('repeats', 'uniform')).toBe('The camera repeats the same picture');
    expect(title('recorded', 'repeats')).toBe('The clip is frozen');
    expect(title('moves', 'uniform')).toBe('The picture moves while the machine reports standstill');
    expect(title('contradicts')).toBe('The picture moves against the steering');
    expect(title('uniform')).toBe('The picture shows nothing');
  });
});

describe('the steering check', () => {
  const armed = (sight: string[], steeringShown: boolean): Facts => ({
    ...FACTS, acts: { ...FACTS.acts, steeringShown },
    telemetry: { guard: { mode: 'armed', blackBox: 'records' }, sight, modeReason: '' } as unknown as TelemetryView,
  });
  it('is offered once the machine is armed, if it was not made yet', () => {
    expect(noticeOf(armed([], false))).toEqual({ tone: 'calm', title: 'Armed', detail: 'Press the throttle to drive.' });
    expect(noticeOf(armed(['unchecked'], false))?.action?.name).toBe('check steering');
  });
  it('asks what was seen, with three answers', () => {
    const { action, other, third } = noticeOf(armed(['unchecked'], true))!;
    expect([action?.name, other?.name, third?.name]).toEqual(['steering agrees', 'steering wrong', 'steering unseen']);
  });
});

describe('a page that only watches', () => {
  it('is described as such, with nothing to press', () => {
    const watches: Facts = { ...FACTS, standing: { ...FACTS.standing!, role: 'watches', holder: { address: '10.0.0.7', sinceUnixMs: 0 } } };
    const notice = noticeOf(watches)!;
    expect([notice.title, notice.action, notice.other]).toEqual(['Watching', undefined, undefined]);
    expect(notice.detail).toBe('The console at 10.0.0.7 drives. This page can only watch.');
  });
});

describe('a silent guard', () => {
  it('is shown in the vehicle\'s words, with nothing to press', () => {
    expect(noticeOf(FACTS)).toEqual({ tone: 'bad', title: 'Guard silent', detail: 'the vehicle\'s guard sends nothing' });
    expect(noticeOf({ ...FACTS, status: null })?.title).toBe('Guard silent');
  });

  it('has not taken an emergency stop, which is shown first', () => {
    const stopped = (stopUnacknowledgedMs: number) => noticeOf({ ...FACTS, acts: { ...FACTS.acts, stopUnacknowledgedMs } })?.title;
    expect([stopped(199), stopped(200)]).toEqual(['Guard silent', 'Emergency stop not acknowledged']);
  });

  it('cannot be concluded from old telemetry', () => {
    expect(noticeOf({ ...FACTS, telemetryAgeMs: 501 })?.title).toBe('Telemetry is stale');
  });
});

describe('a reason that no status has', () => {
  const reason = 'the vehicle drives under another operator';
  const facts = (mode: string): Facts => ({
    ...FACTS, telemetry: { ...DRIVING, guard: { ...DRIVING.guard, mode, cause: 'session ended', value: 1, limit: 0, blockers: [] }, modeReason: reason } as unknown as TelemetryView,
  });

  it('stands alone while another one drives, and behind the guard\'s words otherwise', () => {
    expect(noticeOf(facts('driving'))).toEqual({ tone: 'warn', title: 'Not driven from here', detail: 'The vehicle drives under another operator.' });
    expect(noticeOf(facts('manoeuvre'))?.detail).toMatch(/has ended\. The vehicle drives under another operator\.$/);
  });
});

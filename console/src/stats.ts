/** The counters of both ends: one list for reading and for display. */
import type { ChannelStats } from './message/channel-stats';
import type { LinkStats } from './message/link-stats';

/** A counter: the message's getter and its label on the page. */
export interface Counter<Name> {
  name: Name;
  label: string;
  hint: string;
  /** Shown even if zero. */
  always?: boolean;
}

/** Names of a message's 64-bit getters. */
type CountOf<Message> = {
  [Name in keyof Message]: Message[Name] extends () => bigint ? Name : never
}[keyof Message] & string;

/** Datagrams of any kind on a link, counted by the sender. */
export const SENT_DATAGRAMS = [
  { name: 'datagramsSent', label: 'datagrams', hint: 'Sent since the session began' },
] as const satisfies readonly Counter<CountOf<LinkStats>>[];

/** Datagrams of any kind on a link, counted by the receiver. */
export const RECEIVED_DATAGRAMS = [
  { name: 'datagramsReceived', label: 'received', hint: 'Datagrams that came, each once' },
] as const satisfies readonly Counter<CountOf<LinkStats>>[];

/** Media packets assigned to a link, by outcome. */
export const PACKETS = [
  { name: 'packetsGiven', label: 'packets given', hint: 'Media packets that the link was given' },
  { name: 'packetsAgain', label: 'repairing', hint: 'Of these, in another link\'s place, or fresh for a unit that lacked some' },
  { name: 'packetsDropped', label: 'dropped', hint: 'Their deadline passed here' },
  { name: 'packetsWithdrawn', label: 'withdrawn', hint: 'Taken off the link when it might carry no more' },
  { name: 'packetsSent', label: 'packets sent', hint: 'Media packets that left' },
  { name: 'packetsInTime', label: 'in time', hint: 'Arrived by their deadline' },
  { name: 'packetsLate', label: 'late', hint: 'Arrived after it' },
  { name: 'packetsLost', label: 'packets lost', hint: 'Lost, as far as reports tell' },
] as const satisfies readonly Counter<CountOf<LinkStats>>[];

/** Units counted by the sender. */
export const SENT_UNITS = [
  { name: 'offered', label: 'offered', hint: 'Handed over for sending', always: true },
  { name: 'accepted', label: 'accepted', hint: 'Accepted for sending', always: true },
  { name: 'displaced', label: 'displaced', hint: 'Accepted, and displaced by a newer one before any of it left' },
  { name: 'expired', label: 'expired', hint: 'Accepted, and given up at its deadline before all of it had left' },
  { name: 'refusedNoLink', label: 'refused: no link', hint: 'No session, or no link up' },
  { name: 'refusedInvalid', label: 'refused: invalid', hint: 'Too large, or without a sensible deadline' },
  { name: 'refusedCongested', label: 'refused: congested', hint: 'Queues full, or no link in time' },
] as const satisfies readonly Counter<CountOf<ChannelStats>>[];

/** Units counted by the receiver. */
export const RECEIVED_UNITS = [
  { name: 'delivered', label: 'complete', hint: 'Whole, in time, delivered', always: true },
  { name: 'repaired', label: 'repaired', hint: 'Of these, units that needed a repair packet' },
  { name: 'late', label: 'late', hint: 'The first packet came after the deadline', always: true },
  { name: 'missing', label: 'lost: missing', hint: 'Nothing came' },
  { name: 'incomplete', label: 'lost: incomplete', hint: 'Too few packets at the deadline' },
  { name: 'evicted', label: 'lost: evicted', hint: 'Given up to bound memory, or for a new session' },
  { name: 'malformed', label: 'lost: malformed', hint: 'Packets that make no unit' },
  { name: 'superseded', label: 'superseded', hint: 'Overtaken by a newer one' },
] as const satisfies readonly Counter<CountOf<ChannelStats>>[];

export const LINK_COUNTS = [...SENT_DATAGRAMS, ...RECEIVED_DATAGRAMS, ...PACKETS];
export const UNIT_COUNTS = [...SENT_UNITS, ...RECEIVED_UNITS];
export type LinkCount = (typeof LINK_COUNTS)[number]['name'];
export type UnitCount = (typeof UNIT_COUNTS)[number]['name'];

/** Reads the counters of `list` from `message`. */
export function readCounts<Name extends string>(
  message: Record<Name, () => bigint>, list: readonly Counter<Name>[],
): Record<Name, number> {
  return Object.fromEntries(list.map(({ name }) => [name, Number(message[name]())])) as Record<Name, number>;
}

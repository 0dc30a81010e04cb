/** The counters of both ends: one list for reading and for display. */
import type { ChannelStats } from './message/channel-stats';
import type { LinkStats } from './message/link-stats';

/** A counter: the name of its getter in the message, and its label and tooltip on the page. */
export interface Counter<Name> {
  name: Name;
  label: string;
  hint: string;
  /** True if it is shown even if zero. */
  always?: boolean;
}

/** Names of a message's 64-bit getters. */
type CountOf<Message> = {
  [Name in keyof Message]: Message[Name] extends () => bigint ? Name : never
}[keyof Message] & string;

/** Counters of a link's datagrams of any kind, at the sender. */
export const SENT_DATAGRAMS = [
  { name: 'datagramsSent', label: 'datagrams', hint: 'Sent since the session began' },
] as const satisfies readonly Counter<CountOf<LinkStats>>[];

/** Counters of a link's datagrams of any kind, at the receiver. */
export const RECEIVED_DATAGRAMS = [
  { name: 'datagramsReceived', label: 'received', hint: 'Datagrams received, without duplicates' },
] as const satisfies readonly Counter<CountOf<LinkStats>>[];

/** Counters of the media packets assigned to a link, by outcome. */
export const PACKETS = [
  { name: 'packetsGiven', label: 'packets assigned', hint: 'Media packets assigned to the link' },
  { name: 'packetsAgain', label: 'repairing', hint: 'Of these, packets that replace those of another link, or complete a unit' },
  { name: 'packetsDropped', label: 'dropped', hint: 'Their deadline passed before they were sent' },
  { name: 'packetsWithdrawn', label: 'withdrawn', hint: 'Removed from the link because it may have failed' },
  { name: 'packetsSent', label: 'packets sent', hint: 'Media packets sent' },
  { name: 'packetsInTime', label: 'in time', hint: 'Arrived by their deadline' },
  { name: 'packetsLate', label: 'late', hint: 'Arrived after their deadline' },
  { name: 'packetsLost', label: 'packets lost', hint: 'Lost according to the reports' },
] as const satisfies readonly Counter<CountOf<LinkStats>>[];

/** Counters of a channel's units at the sender. */
export const SENT_UNITS = [
  { name: 'offered', label: 'offered', hint: 'Handed over for sending', always: true },
  { name: 'accepted', label: 'accepted', hint: 'Accepted for sending', always: true },
  { name: 'displaced', label: 'displaced', hint: 'Accepted, then displaced by a newer unit before any of it was sent' },
  { name: 'expired', label: 'expired', hint: 'Accepted, then dropped at its deadline before all of it was sent' },
  { name: 'refusedNoLink', label: 'refused: no link', hint: 'No session, or no link up' },
  { name: 'refusedInvalid', label: 'refused: invalid', hint: 'Too large, or without a valid deadline' },
  { name: 'refusedCongested', label: 'refused: congested', hint: 'Queues full, or no link fast enough' },
] as const satisfies readonly Counter<CountOf<ChannelStats>>[];

/** Counters of a channel's units at the receiver. */
export const RECEIVED_UNITS = [
  { name: 'delivered', label: 'complete', hint: 'Delivered complete and in time', always: true },
  { name: 'repaired', label: 'repaired', hint: 'Of these, units that needed a repair packet' },
  { name: 'late', label: 'late', hint: 'The first packet arrived after the deadline', always: true },
  { name: 'missing', label: 'lost: missing', hint: 'No packet arrived' },
  { name: 'incomplete', label: 'lost: incomplete', hint: 'Too few packets at the deadline' },
  { name: 'evicted', label: 'lost: evicted', hint: 'Dropped to limit memory, or at a new session' },
  { name: 'malformed', label: 'lost: malformed', hint: 'Packets that do not form a unit' },
  { name: 'superseded', label: 'superseded', hint: 'Replaced by a newer unit' },
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

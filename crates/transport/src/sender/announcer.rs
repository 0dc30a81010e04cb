use std::collections::BTreeMap;

use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use crate::channel::{Channel, ChannelNumber, Descriptor, Order, Priority};
use crate::wire::{Acknowledgement, Announcement};

/// An announcer of channels to the peer, part by part, until the peer has acknowledged each
/// completely.
///
/// It sends the first part of every channel first, so that the peer accepts the channel's units,
/// then the rest. Its rate is low enough not to disturb other traffic.
#[derive(Debug)]
pub(crate) struct Announcer {
    channels: BTreeMap<ChannelNumber, Announcing>,
    /// Earliest send time of the next part.
    due_at: Instant,
}

/// A channel whose announcement is not fully acknowledged.
#[derive(Debug)]
struct Announcing {
    order: Order,
    priority: Priority,
    descriptor: Vec<u8>,
    /// Number of descriptor bytes acknowledged by the peer.
    acknowledged: usize,
    /// Number of descriptor bytes sent in the current round; `None` before the first part.
    sent: Option<usize>,
    /// Number of acknowledgements in a row without progress: an earlier part was lost.
    stuck: u8,
}

impl Announcer {
    /// Starts to announce `channels`.
    pub(crate) fn new<'a>(channels: impl Iterator<Item = &'a Channel>, now: Instant) -> Self {
        let mut announcer = Self { channels: BTreeMap::new(), due_at: now };
        channels.for_each(|channel| announcer.add(channel));
        announcer
    }

    /// Begins to announce a channel, anew if it is announced already. The command and the media
    /// channel are announced only if they have a descriptor.
    pub(crate) fn add(&mut self, channel: &Channel) {
        let given = matches!(channel.priority, Priority::Command | Priority::Media);
        if given && channel.descriptor == Descriptor::default() {
            return;
        }
        let mut descriptor = Vec::new();
        channel.descriptor.write(&mut descriptor);
        let Channel { order, priority, .. } = *channel;
        let announcing =
            Announcing { order, priority, descriptor, acknowledged: 0, sent: None, stuck: 0 };
        self.channels.insert(channel.number, announcing);
    }

    /// Returns when the next part is due; `None` once everything is acknowledged.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        (!self.channels.is_empty()).then_some(self.due_at)
    }

    /// Postpones a due part until [`LINK_PAUSE`] from now, because no link can speak.
    pub(crate) fn wait(&mut self, now: Instant) {
        if self.due_at <= now {
            self.due_at = now + LINK_PAUSE;
        }
    }

    /// Appends the part that is due now, for a link with the rate `link`, and schedules the next
    /// one by that rate. Returns false if none is due, or if everything was sent: then the parts
    /// not acknowledged are due again after [`ROUND_PAUSE`].
    pub(crate) fn write_due(&mut self, out: &mut Vec<u8>, link: Bitrate, now: Instant) -> bool {
        if now < self.due_at {
            return false;
        }
        let place = |announcing: &Announcing| announcing.sent.unwrap_or(0);
        let fresh = self.channels.iter().find(|(_, announcing)| announcing.sent.is_none());
        let unsent = |(_, announcing): &(&ChannelNumber, &Announcing)| {
            place(announcing) < announcing.descriptor.len()
        };
        let next = fresh.or_else(|| self.channels.iter().find(unsent)).map(|(channel, _)| *channel);
        let next = next.and_then(|channel| Some((channel, self.channels.get_mut(&channel)?)));
        let Some((channel, announcing)) = next else {
            // Everything was sent: after a pause, resend the parts that were not acknowledged.
            for announcing in self.channels.values_mut() {
                announcing.sent = Some(announcing.acknowledged);
            }
            self.due_at = now + ROUND_PAUSE;
            return false;
        };
        let at = announcing.sent.unwrap_or(0);
        let end = (at + PART_BYTES).min(announcing.descriptor.len());
        announcing.sent = Some(end);
        let before = out.len();
        Announcement {
            channel,
            order: announcing.order,
            priority: announcing.priority,
            total: announcing.descriptor.len() as u16,
            at: at as u16,
            bytes: &announcing.descriptor[at..end],
        }
        .write(out);
        let rate = RATE.min(link.scale(SHARE)).max(RATE_LEAST);
        self.due_at = now + rate.time_for(ByteCount::new((out.len() - before) as u64));
        true
    }

    /// Handles the peer's acknowledgement of an announcement: ends the announcement if it is
    /// complete, and resends from the first gap after [`STUCK_MAX`] acknowledgements without
    /// progress.
    pub(crate) fn on_acknowledged(&mut self, told: Acknowledgement) {
        let Some(announcing) = self.channels.get_mut(&told.channel) else { return };
        let received = usize::from(told.received).min(announcing.descriptor.len());
        if received > announcing.acknowledged {
            (announcing.acknowledged, announcing.stuck) = (received, 0);
        } else {
            announcing.stuck += 1;
        }
        if announcing.stuck == STUCK_MAX {
            (announcing.sent, announcing.stuck) = (Some(announcing.acknowledged), 0);
        }
        if announcing.acknowledged >= announcing.descriptor.len() {
            self.channels.remove(&told.channel);
        }
    }
}

/// Descriptor bytes per part: 3 ms on a 1 Mbit/s link, and a part alone fits the smallest datagram.
const PART_BYTES: usize = 110;
/// Maximum rate of announcements: all of our schemas within four seconds.
const RATE: Bitrate = Bitrate::from_kbps(64);
/// Maximum rate of announcements as a share of the link's rate; more would hold up other traffic on
/// a slow link.
const SHARE: f64 = 1.0 / 32.0;
const RATE_LEAST: Bitrate = Bitrate::from_kbps(4);
/// Interval between checks for a link that can speak.
const LINK_PAUSE: Duration = Duration::from_millis(20);
/// Acknowledgements without progress that trigger a resend, as in TCP; fewer indicate reordering.
const STUCK_MAX: u8 = 3;
/// Pause before a resend round: a slow link's round trip.
const ROUND_PAUSE: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Packet, Packets};

    fn channel(number: u8, schema_bytes: usize) -> Channel {
        Channel {
            number: ChannelNumber::new(number),
            order: Order::ByDeadline,
            priority: Priority::Data,
            rate_cap: Some(Bitrate::from_kbps(64)),
            descriptor: Descriptor {
                topic: format!("/{number}"),
                schema: vec![number; schema_bytes],
                ..Descriptor::default()
            },
        }
    }

    #[test]
    fn every_channel_is_announced_despite_lost_parts() {
        let channels = [channel(2, 3_000), channel(3, 0), channel(200, 20_000)];
        let mut announcer = Announcer::new(channels.iter(), Instant::ZERO);
        // Contiguous bytes that the peer has of each channel.
        let mut known: BTreeMap<ChannelNumber, Vec<u8>> = BTreeMap::new();
        let (mut sent, mut bytes) = (0, Vec::new());
        while let Some(at) = announcer.due_at() {
            bytes.clear();
            if !announcer.write_due(&mut bytes, Bitrate::from_mbps(8), at) {
                continue;
            }
            sent += 1;
            assert!(sent < 4_000, "it never ends");
            // Every other part is lost, and every third acknowledgement.
            if (sent / 3) % 2 == 0 {
                continue;
            }
            let Some(Ok(Packet::Announcement(part))) = Packets::of(&bytes).next() else {
                panic!("no announcement")
            };
            let received = known.entry(part.channel).or_default();
            if received.len() == usize::from(part.at) {
                received.extend_from_slice(part.bytes);
            }
            if sent % 3 != 0 {
                let received = received.len() as u16;
                announcer.on_acknowledged(Acknowledgement { channel: part.channel, received });
            }
        }
        for channel in channels {
            let descriptor = Descriptor::parse(&known[&channel.number]);
            assert_eq!(descriptor, Ok(channel.descriptor));
        }
    }

    #[test]
    fn a_channel_that_says_nothing_new_is_not_announced() {
        let given = [Channel::command(), Channel::media()];
        assert_eq!(Announcer::new(given.iter(), Instant::ZERO).due_at(), None);
    }
}

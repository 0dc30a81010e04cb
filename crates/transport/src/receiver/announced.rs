use std::collections::{BTreeMap, BTreeSet};

use crate::channel::{
    CHANNELS_MAX, ChannelNumber, DESCRIPTOR_BYTES_MAX, Descriptor, Order, Priority,
};
use crate::counters::Discard;
use crate::wire::{Acknowledgement, Announcement};

/// Channels announced by the peer.
///
/// Bounded like the sender's side: at most [`CHANNELS_MAX`] channels with together
/// [`DESCRIPTOR_BYTES_MAX`] bytes of descriptors; further ones are refused.
#[derive(Debug, Default)]
pub(crate) struct Announced {
    channels: BTreeMap<ChannelNumber, Coming>,
    /// Channels with a received part that is not acknowledged yet.
    unanswered: BTreeSet<ChannelNumber>,
}

/// A channel whose descriptor arrives in parts.
#[derive(Debug)]
struct Coming {
    order: Order,
    priority: Priority,
    /// Length of the complete descriptor in bytes.
    total: u16,
    /// Bytes of the descriptor received so far, without gaps from its start on.
    descriptor: Vec<u8>,
    /// True once the descriptor is complete, and was returned or found malformed.
    told: bool,
}

impl Announced {
    /// Returns order and priority of a channel's units; `None` if it was not announced.
    pub(crate) fn get(&self, channel: ChannelNumber) -> Option<(Order, Priority)> {
        self.channels.get(&channel).map(|coming| (coming.order, coming.priority))
    }

    /// Handles a part of an announcement; returns the descriptor once, when it is complete. A part
    /// that leaves a gap before it is dropped, and the peer sends it again.
    ///
    /// # Errors
    /// Any of the reasons [`Discard::AnnouncementInconsistent`], [`Discard::AnnouncementOverflow`]
    /// and [`Discard::AnnouncementMalformed`].
    pub(crate) fn handle(
        &mut self,
        part: &Announcement<'_>,
    ) -> Result<Option<Descriptor>, Discard> {
        if !self.channels.contains_key(&part.channel) {
            self.admit(part)?;
        }
        let Some(coming) = self.channels.get_mut(&part.channel) else { return Ok(None) };
        let treatment = (coming.order, coming.priority, coming.total);
        if treatment != (part.order, part.priority, part.total) {
            return Err(Discard::AnnouncementInconsistent);
        }
        self.unanswered.insert(part.channel);
        let received = coming.descriptor.len();
        let begun = received.checked_sub(usize::from(part.at));
        if let Some(new) = begun.and_then(|known| part.bytes.get(known..)) {
            coming.descriptor.extend_from_slice(new);
        }
        if coming.told || coming.descriptor.len() < usize::from(coming.total) {
            return Ok(None);
        }
        coming.told = true;
        Descriptor::parse(&coming.descriptor).map(Some).map_err(|_| Discard::AnnouncementMalformed)
    }

    fn admit(&mut self, part: &Announcement<'_>) -> Result<(), Discard> {
        let fits = match part.channel {
            ChannelNumber::COMMAND => {
                (part.priority, part.order) == (Priority::Command, Order::NewestWins)
            }
            ChannelNumber::MEDIA => {
                (part.priority, part.order) == (Priority::Media, Order::ByDeadline)
            }
            _ => !matches!(part.priority, Priority::Command | Priority::Media),
        };
        if !fits {
            return Err(Discard::AnnouncementInconsistent);
        }
        let bytes = self.channels.values().map(|coming| u64::from(coming.total)).sum::<u64>();
        let full = self.channels.len() >= CHANNELS_MAX
            || bytes + u64::from(part.total) > DESCRIPTOR_BYTES_MAX;
        if full {
            return Err(Discard::AnnouncementOverflow);
        }
        let coming = Coming {
            order: part.order,
            priority: part.priority,
            total: part.total,
            descriptor: Vec::new(),
            told: false,
        };
        self.channels.insert(part.channel, coming);
        Ok(())
    }

    /// Returns whether an acknowledgement is due.
    pub(crate) fn owes(&self) -> bool {
        !self.unanswered.is_empty()
    }

    /// Returns the next acknowledgement that is due, which is then no longer due; `None` if
    /// none is due.
    pub(crate) fn acknowledge(&mut self) -> Option<Acknowledgement> {
        let channel = self.unanswered.pop_first()?;
        let coming = self.channels.get(&channel)?;
        Some(Acknowledgement { channel, received: coming.descriptor.len() as u16 })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn part(channel: u8, total: u16, at: u16, bytes: &[u8]) -> Announcement<'_> {
        Announcement {
            channel: ChannelNumber::new(channel),
            order: Order::NewestWins,
            priority: Priority::Telemetry,
            total,
            at,
            bytes,
        }
    }

    #[test]
    fn a_descriptor_is_reassembled_and_delivered_once() {
        let descriptor = Descriptor { schema: vec![7; 500], ..Descriptor::default() };
        let mut bytes = Vec::new();
        descriptor.write(&mut bytes);
        let total = bytes.len() as u16;
        let mut announced = Announced::default();
        assert_eq!(announced.handle(&part(9, total, 200, &bytes[200..400])), Ok(None));
        assert_eq!(
            announced.get(ChannelNumber::new(9)),
            Some((Order::NewestWins, Priority::Telemetry))
        );
        let received = |announced: &mut Announced| announced.acknowledge().unwrap().received;
        assert_eq!(received(&mut announced), 0);
        assert_eq!(announced.handle(&part(9, total, 0, &bytes[..200])), Ok(None));
        assert_eq!(received(&mut announced), 200);
        assert!(!announced.owes());
        assert_eq!(announced.handle(&part(9, total, 100, &bytes[100..])), Ok(Some(descriptor)));
        assert_eq!(announced.handle(&part(9, total, 0, &bytes)), Ok(None));
        assert_eq!(received(&mut announced), total);
    }

    #[test]
    fn another_treatment_of_a_known_channel_is_refused() {
        let mut announced = Announced::default();
        announced.handle(&part(9, 10, 0, &[])).unwrap();
        let other = Announcement { order: Order::ByDeadline, ..part(9, 10, 0, &[]) };
        assert_eq!(announced.handle(&other), Err(Discard::AnnouncementInconsistent));
        let command = Announcement { priority: Priority::Command, ..part(8, 10, 0, &[]) };
        assert_eq!(announced.handle(&command), Err(Discard::AnnouncementInconsistent));
        assert_eq!(announced.handle(&part(0, 10, 0, &[])), Err(Discard::AnnouncementInconsistent));
    }

    proptest! {
        #[test]
        fn announcements_are_kept_within_bounds(
            parts in prop::collection::vec(
                (any::<u8>(), any::<u16>(), any::<u16>(), prop::collection::vec(any::<u8>(), 0..300)),
                0..200,
            ),
        ) {
            let mut announced = Announced::default();
            for (channel, total, at, bytes) in &parts {
                if usize::from(*at) + bytes.len() <= usize::from(*total) {
                    let _ = announced.handle(&part(*channel, *total, *at, bytes));
                }
            }
            let totals = announced.channels.values().map(|coming| u64::from(coming.total));
            prop_assert!(totals.sum::<u64>() <= DESCRIPTOR_BYTES_MAX);
            prop_assert!(announced.channels.len() <= CHANNELS_MAX);
            for coming in announced.channels.values() {
                prop_assert!(coming.descriptor.len() <= usize::from(coming.total));
            }
            while let Some(ack) = announced.acknowledge() {
                prop_assert!(announced.get(ack.channel).is_some());
            }
        }
    }
}

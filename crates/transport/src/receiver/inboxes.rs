use std::collections::BTreeMap;

use tautline_units::Instant;

use super::inbox::Inbox;
use crate::channel::{ChannelNumber, Order};

/// The inboxes of a session: one for each channel with received packets.
#[derive(Debug, Default)]
pub(crate) struct Inboxes {
    inboxes: BTreeMap<ChannelNumber, Inbox>,
}

impl Inboxes {
    /// Returns the inbox of a channel, created with delivery order `order` if there is none.
    pub(crate) fn of(&mut self, channel: ChannelNumber, order: Order) -> &mut Inbox {
        self.inboxes.entry(channel).or_insert_with(|| Inbox::new(channel, order))
    }

    /// Returns the inbox of a channel; `None` before its first packet.
    pub(crate) fn get(&self, channel: ChannelNumber) -> Option<&Inbox> {
        self.inboxes.get(&channel)
    }

    /// Returns every inbox, in order of channel numbers.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (ChannelNumber, &mut Inbox)> {
        self.inboxes.iter_mut().map(|(channel, inbox)| (*channel, inbox))
    }

    /// Returns the earliest deadline of an open unit of any channel; `None` without open units.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        self.inboxes.values().filter_map(Inbox::due_at).min()
    }
}

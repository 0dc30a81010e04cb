use tautline_guard::Machine;
use tautline_guard::description::{Counts, Entry, Item, Revision, counts};
use tautline_guard::frame::{self, Description, Sender};
use tautline_net::datagram::Client;
use tautline_units::Instant;

/// Sender of a machine's description, one entry at a time in turn, and of its readings.
#[derive(Debug)]
pub(crate) struct Describer {
    entries: Vec<Entry>,
    next: usize,
    described: Sender,
    read: Sender,
}

impl Describer {
    /// Creates the sender of a description with these items, which may be empty.
    ///
    /// # Panics
    /// If an item cannot be declared.
    pub(crate) fn new(items: &[Item]) -> Self {
        let counts = counts(items).unwrap_or_else(|(index, flaw)| {
            panic!("the machine cannot declare {:?}: {flaw}", items[index].name())
        });
        let revision = frame::revision(items);
        let Counts { axes, actions, .. } = counts;
        let entry = |(place, item): (usize, &Item)| {
            let before = match item {
                Item::Axis(_) => 0,
                Item::Action(_) => usize::from(axes),
                Item::Value(_) => usize::from(axes) + usize::from(actions),
            };
            let index = (place - before) as u8;
            Some(Entry { revision: revision?, counts, index, item: *item })
        };
        let entries = items.iter().enumerate().filter_map(entry).collect();
        Self { entries, next: 0, described: Sender::default(), read: Sender::default() }
    }

    /// Returns the revision of the description; `None` of an empty one.
    pub(crate) fn revision(&self) -> Option<Revision> {
        self.entries.first().map(|entry| entry.revision)
    }

    /// Sends the next entry and the machine's new readings, at most [`READINGS_MAX`]; nothing if
    /// the description is empty. Readings of values that are not declared are left out. Frames that
    /// the system does not send are not repeated: each entry comes again in turn, each reading when
    /// the machine reports it again.
    pub(crate) fn send(&mut self, machine: &mut impl Machine, client: &mut Client, now: Instant) {
        let Some(entry) = self.entries.get(self.next).copied() else { return };
        self.next = (self.next + 1) % self.entries.len();
        client.send(&self.described.encode(&Description { source: now, entry }));
        for _ in 0..READINGS_MAX {
            let Some((index, reading)) = machine.reading(now) else { break };
            if index < entry.counts.values {
                let revision = entry.revision;
                let value = frame::Value { source: now, revision, index, reading };
                client.send(&self.read.encode(&value));
            }
        }
    }
}

/// Maximum number of readings sent every 10 ms: all 64 values 12 times a second.
const READINGS_MAX: usize = 8;

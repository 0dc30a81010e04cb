//! A configurable application: media units at even intervals, commands, and the records of both.

mod source;

use rand_chacha::ChaCha20Rng;
use tautline_transport::link::State;
use tautline_transport::{ChannelNumber, Event, LossReason, Session, UnitNumber};
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

pub use source::{Commands, Media};

use crate::endpoint::{Application, Moment, Transport};

/// An application that sends media, commands, both or nothing, and records all events.
///
/// A unit carries its index in [`Flow::offered`], then a pattern that reveals damage. Received
/// units are checked against it. All recorded instants are in world time.
#[derive(Debug, Default)]
pub struct Traffic {
    media_source: Option<Media>,
    command_source: Option<Commands>,
    media_at: Instant,
    command_at: Instant,
    /// Time from which nothing is sent, on the endpoint's clock; `None` for no end.
    until: Option<Instant>,
    buffer: Vec<u8>,
    /// Record of the media units, sent and received.
    pub media: Flow,
    /// Record of the commands, sent and received.
    pub commands: Flow,
    /// Times at which a media unit was due but not sent, because the budget for media was zero.
    pub pauses: Vec<Instant>,
    /// Every budget for media that the session reported, with its time.
    pub budgets: Vec<(Instant, Bitrate)>,
    /// Every state change of a link: time, number of the link, new state.
    pub states: Vec<(Instant, u8, State)>,
    /// Number of times the session was established.
    pub established: u32,
}

/// Units of one channel at one endpoint: those it sent and those it received.
#[derive(Debug, Default)]
pub struct Flow {
    /// Every unit offered to the session, in order.
    pub offered: Vec<Offered>,
    /// Every unit received, in order.
    pub received: Vec<Received>,
    /// Number of every unit of the other end that this endpoint's session reported lost, and the
    /// reason.
    pub lost: Vec<(UnitNumber, LossReason)>,
}

/// A unit offered to the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offered {
    /// World time at which the unit was offered to the session.
    pub at: Instant,
    /// Size of the offered unit.
    pub bytes: ByteCount,
    /// Number of the unit if the session accepted it; `None` if it refused.
    pub accepted: Option<UnitNumber>,
}

/// A received unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Index of the unit in [`Flow::offered`] of the sender.
    pub index: u64,
    /// Number that the sender's session gave the unit.
    pub number: UnitNumber,
    /// World time at which the unit arrived.
    pub at: Instant,
    /// Time of sending on the receiver's clock, as the session estimates it; `None` while it cannot
    /// compare the clocks.
    pub sent_at: Option<Instant>,
    /// Error bound of the session's clock estimate at `at`; `None` while it has no estimate.
    pub clock_error: Option<Duration>,
    /// True if repair packets replaced missing source packets.
    pub repaired: bool,
}

impl Traffic {
    /// Sets the source of media, in place of one set before.
    pub fn with_media(self, media: Media) -> Self {
        Self { media_source: Some(media), ..self }
    }

    /// Sets the source of commands, in place of one set before.
    pub fn with_commands(self, commands: Commands) -> Self {
        Self { command_source: Some(commands), ..self }
    }

    /// Stops sending at `until`, on the endpoint's clock.
    pub fn until(self, until: Instant) -> Self {
        Self { until: Some(until), ..self }
    }

    /// Returns the last budget for media that the session reported; zero before the first.
    pub fn budget(&self) -> Bitrate {
        self.budgets.last().map_or(Bitrate::ZERO, |(_, budget)| *budget)
    }

    /// Returns the time at which the next unit is due; `None` if nothing is left to send.
    pub fn next_at(&self) -> Option<Instant> {
        let media = self.media_source.map(|_| self.media_at);
        let command = self.command_source.map(|_| self.command_at);
        let next = media.into_iter().chain(command).min()?;
        Some(next).filter(|at| self.until.is_none_or(|until| *at < until))
    }

    /// Sends the units that are due, at most one of a kind, and none after the end; a command goes
    /// before media. A media unit due at a budget of zero is recorded as a pause.
    pub fn produce(&mut self, session: &mut impl Transport, at: Moment) {
        let now = at.local();
        if self.until.is_some_and(|until| now >= until) {
            return;
        }
        if let Some(commands) = self.command_source
            && now >= self.command_at
        {
            self.command_at = now + commands.interval;
            self.offer(session, ChannelNumber::COMMAND, commands.bytes, commands.deadline, at);
        }
        if let Some(media) = self.media_source
            && now >= self.media_at
        {
            self.media_at = (self.media_at + media.interval()).max(now);
            match media.unit_bytes(self.media.offered.len() as u64, self.budget()) {
                Some(bytes) => self.offer(session, ChannelNumber::MEDIA, bytes, media.deadline, at),
                None => self.pauses.push(at.world()),
            }
        }
    }

    fn offer(
        &mut self,
        session: &mut impl Transport,
        channel: ChannelNumber,
        bytes: ByteCount,
        deadline: Duration,
        at: Moment,
    ) {
        let flow = match channel {
            ChannelNumber::COMMAND => &mut self.commands,
            _ => &mut self.media,
        };
        write_unit(&mut self.buffer, flow.offered.len() as u64, bytes);
        // A refused unit counts as missing at the far end.
        let accepted = session.send(channel, &self.buffer, deadline, at.local()).ok();
        let bytes = ByteCount::of(&self.buffer);
        flow.offered.push(Offered { at: at.world(), bytes, accepted });
    }

    /// Records an event; `clock_error` is the session's clock error at that time.
    ///
    /// # Panics
    /// If a unit is damaged.
    pub fn note(&mut self, event: Event, clock_error: Option<Duration>, at: Moment) {
        match event {
            Event::Unit { channel, number, bytes, sent_at, repaired } => {
                let index = index_of(&bytes);
                let at = at.world();
                let received = Received { index, number, at, sent_at, clock_error, repaired };
                match channel {
                    ChannelNumber::COMMAND => self.commands.received.push(received),
                    _ => self.media.received.push(received),
                }
            }
            Event::UnitLost { channel, number, reason } => match channel {
                ChannelNumber::COMMAND => self.commands.lost.push((number, reason)),
                _ => self.media.lost.push((number, reason)),
            },
            Event::Budget { media, .. } => self.budgets.push((at.world(), media)),
            Event::Link { link, state } => self.states.push((at.world(), link.get(), state)),
            Event::Established => self.established += 1,
            Event::Refused { .. } | Event::Announced { .. } => {}
        }
    }

    /// Makes the first unit of each source due at `start` on the endpoint's clock.
    pub fn begin(&mut self, start: Instant) {
        (self.media_at, self.command_at) = (start, start);
    }
}

impl Application for Traffic {
    fn next_at(&self) -> Option<Instant> {
        self.next_at()
    }

    fn produce(&mut self, session: &mut Session, _rng: &mut ChaCha20Rng, at: Moment) {
        self.produce(session, at);
    }

    fn handle_event(&mut self, session: &Session, event: Event, at: Moment) {
        self.note(event, session.clock().map(|clock| clock.error()), at);
    }

    fn begin(&mut self, start: Instant) {
        self.begin(start);
    }
}

/// Writes a unit: its index among those offered, then a pattern that differs from unit to unit.
fn write_unit(unit: &mut Vec<u8>, index: u64, bytes: ByteCount) {
    unit.resize(HEAD_BYTES.max(bytes.get() as usize), 0);
    let (head, body) = unit.split_at_mut(HEAD_BYTES);
    head.copy_from_slice(&index.to_be_bytes());
    let row = row(index);
    body.chunks_mut(ROW_BYTES).for_each(|chunk| chunk.copy_from_slice(&row[..chunk.len()]));
}

/// Reads a unit's index among those offered, and checks its pattern.
fn index_of(unit: &[u8]) -> u64 {
    let (head, body) = unit.split_first_chunk().expect("every unit has a head");
    let index = u64::from_be_bytes(*head);
    let row = row(index);
    let intact = body.chunks(ROW_BYTES).all(|chunk| chunk == &row[..chunk.len()]);
    assert!(intact, "unit {index} came damaged");
    index
}

fn row(index: u64) -> [u8; ROW_BYTES] {
    std::array::from_fn(|at| at as u8 ^ index as u8)
}

const HEAD_BYTES: usize = 8;
const ROW_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_of_any_size_contains_its_index() {
        let mut unit = Vec::new();
        for bytes in [0, 8, 9, 263, 264, 265, 5_000] {
            write_unit(&mut unit, 0x0102_0304, ByteCount::new(bytes));
            assert_eq!(unit.len() as u64, bytes.max(8));
            assert_eq!(index_of(&unit), 0x0102_0304);
        }
    }

    #[test]
    #[should_panic = "damaged"]
    fn damage_is_found() {
        let mut unit = Vec::new();
        write_unit(&mut unit, 5, ByteCount::new(1_000));
        unit[700] ^= 1;
        index_of(&unit);
    }
}

//! Statistics of one end: those of its session and those of its process.
//!
//! A [`Snapshot`] is sent in one or two messages ([`Snapshot::parts`]). The receiver keeps the
//! newest part of each kind ([`Snapshot::update`]).

mod counts;
mod link;

use flatbuffers::{FlatBufferBuilder, WIPOffset};
use tautline_units::Instant;

pub use link::{Delays, LinkState, LinkStats, PacketCounts, RateControl, TrafficCounts};

use crate::codec::codec;
use crate::fields::{Kinds, Known, Plain, Text, choice, fields};
use crate::generated::snapshot::{self as wire_snapshot, Snapshot as Root};
use crate::wire::{Kind, LINK_COUNT_MAX, NAME_BYTES_MAX, list, number_f64, text};
use crate::{Error, drop_count};

use counts::counts;

/// All statistics of one end at one instant. Totals only increase during a session or the life of a
/// process.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    /// End whose statistics these are.
    pub end: End,
    /// Time at which the statistics were taken, on that end's clock.
    pub taken_at: Instant,
    /// Session stats; `None` before the first session, and in a message without them.
    pub session: Option<SessionStats>,
    /// Process stats; `None` in a message without them.
    pub process: Option<ProcessStats>,
}

/// Statistics of one end's transport.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct SessionStats {
    /// Links of the session; at most 16.
    pub links: Vec<LinkStats>,
    /// Channels of the session; at most 32.
    pub channels: Vec<ChannelStats>,
    /// Nonzero drop counts of the transport and the event loop; at most 128, names at most 64
    /// bytes.
    pub drops: Vec<(String, u64)>,
}

/// Statistics of one end's process.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct ProcessStats {
    /// Named values in display order; at most 64.
    pub values: Vec<Value>,
    /// Nonzero drop counts outside the session; at most 128, names at most 64 bytes.
    pub drops: Vec<(String, u64)>,
}

/// A named value that a process reports about itself.
#[derive(Clone, PartialEq, Debug)]
pub struct Value {
    /// Display name, constant and unique within its snapshot; at most 64 bytes.
    pub name: String,
    /// The value as a number; finite.
    pub number: f64,
    /// Unit, shown after the number: `s`, `bit/s`, `V`; at most 16 bytes, empty for a bare number.
    pub unit: String,
    /// True if the value is a total, which only increases while the process runs.
    pub total: bool,
}

fields! {
    /// Statistics of one channel's units, in both directions.
    #[derive(Clone, PartialEq, Default, Debug)]
    ChannelStats of wire_snapshot::ChannelStats<'_>, wire_snapshot::ChannelStatsArgs, "channels." {
        /// Number of the channel.
        channel: u8 = channel as Plain,
        /// Display name of the channel, at most 64 bytes.
        name: String = name as Text(NAME_BYTES_MAX),
        /// Share late or lost of the other end's units in the last ten seconds, 0 to 1; `None` if
        /// none were due.
        late_or_lost: Option<f32> = late_or_lost as Known::SHARE,
        /// Counts of the channel's units by outcome.
        units: UnitCounts,
    }
}

counts! {
    /// Numbers of one channel's units since the session object was created, by outcome.
    UnitCounts of wire_snapshot::ChannelStatsArgs<'_>, wire_snapshot::ChannelStats<'_> {
        /// Units that this end's applications offered for sending, accepted or refused.
        offered: offered,
        /// Units of this end that the session accepted for sending.
        accepted: accepted,
        /// Units of this end refused: no session, or no link up.
        refused_no_link: refused_no_link,
        /// Units of this end refused: too large, or without a valid deadline.
        refused_invalid: refused_invalid,
        /// Units of this end refused: queues full, or no link fast enough.
        refused_congested: refused_congested,
        /// Units of this end accepted and displaced by a newer one before any packet was sent.
        displaced: displaced,
        /// Units of this end accepted and dropped at the deadline before all packets were sent.
        expired: expired,
        /// Units of this end that the other end reports as delivered.
        reported_delivered: reported_delivered,
        /// Units of this end that the other end reports as lost.
        reported_lost: reported_lost,
        /// Units of the other end known to have been sent.
        heard: heard,
        /// Units of the other end delivered here.
        delivered: delivered,
        /// Units of the other end delivered here that needed a repair packet.
        repaired: repaired,
        /// Units of the other end lost: no packet arrived.
        missing: missing,
        /// Units of the other end lost: too few packets at the deadline.
        incomplete: incomplete,
        /// Units of the other end lost: the first packet arrived after the deadline.
        late: late,
        /// Units of the other end lost: dropped to bound memory, or for a new session.
        evicted: evicted,
        /// Units of the other end lost: malformed packets.
        malformed: malformed,
        /// Units of the other end superseded here by a newer one, on channels where the newest
        /// wins.
        superseded: superseded,
    }
}

impl UnitCounts {
    /// Returns the number of this end's units refused for sending, for any reason.
    pub fn refused(&self) -> u64 {
        let reasons = [self.refused_no_link, self.refused_invalid, self.refused_congested];
        reasons.into_iter().fold(0, u64::saturating_add)
    }

    /// Returns the number of the other end's units lost, for any reason.
    pub fn lost(&self) -> u64 {
        let reasons = [self.missing, self.incomplete, self.late, self.evicted, self.malformed];
        reasons.into_iter().fold(0, u64::saturating_add)
    }
}

choice! {
    /// End of a session to which a snapshot belongs.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
    pub enum End of wire_snapshot::End, "end" {
        /// The operator's end.
        #[default]
        Operator,
        /// The vehicle's end.
        Vehicle,
    }
}

codec!(Snapshot);

impl Snapshot {
    /// Returns the snapshot of `end` before any statistics exist.
    pub fn empty(end: End) -> Self {
        Self { end, taken_at: Instant::ZERO, session: None, process: None }
    }

    /// Returns the snapshot as messages of one part each, without those of absent parts: in small
    /// packets, one unit may not hold both.
    pub fn parts(&self) -> impl Iterator<Item = Self> + '_ {
        let session = self.session.clone().map(|session| Self {
            session: Some(session),
            process: None,
            ..*self
        });
        let process = self.process.clone().map(|process| Self {
            session: None,
            process: Some(process),
            ..*self
        });
        session.into_iter().chain(process)
    }

    /// Takes over the time of `newer` and the parts that it contains, and keeps the others. The end
    /// stays.
    pub fn update(&mut self, newer: Self) {
        self.taken_at = newer.taken_at;
        self.session = newer.session.or_else(|| self.session.take());
        self.process = newer.process.or_else(|| self.process.take());
    }

    /// Returns every link; none before the first session.
    pub fn links(&self) -> &[LinkStats] {
        self.session.as_ref().map_or(&[], |session| &session.links)
    }

    /// Returns every channel; none before the first session.
    pub fn channels(&self) -> &[ChannelStats] {
        self.session.as_ref().map_or(&[], |session| &session.channels)
    }

    /// Returns every value of the process.
    pub fn values(&self) -> &[Value] {
        self.process.as_ref().map_or(&[], |process| &process.values)
    }

    /// Returns every nonzero drop count, the process's first.
    pub fn drops(&self) -> impl Iterator<Item = (&str, u64)> {
        let process = self.process.iter().flat_map(|process| &process.drops);
        let session = self.session.iter().flat_map(|session| &session.drops);
        process.chain(session).map(|(name, count)| (name.as_str(), *count))
    }

    fn write(&self, builder: &mut FlatBufferBuilder<'static>) {
        let session = self.session.as_ref().map(|session| session.write(builder));
        let process = self.process.as_ref().map(|process| process.write(builder));
        let arguments = wire_snapshot::SnapshotArgs {
            end: self.end.to_wire(),
            taken_at_ns: self.taken_at.as_nanos(),
            session,
            process,
        };
        let root = Root::create(builder, &arguments);
        wire_snapshot::finish_snapshot_buffer(builder, root);
    }

    fn read(root: Root<'_>) -> Result<Self, Error> {
        Ok(Self {
            end: End::from_wire(root.end())?,
            taken_at: Instant::from_nanos(root.taken_at_ns()),
            session: root.session().map(SessionStats::read).transpose()?,
            process: root.process().map(ProcessStats::read).transpose()?,
        })
    }
}

impl SessionStats {
    fn write(
        &self,
        builder: &mut FlatBufferBuilder<'static>,
    ) -> WIPOffset<wire_snapshot::SessionStats<'static>> {
        let links: Vec<_> = self.links.iter().map(|link| link.write(builder)).collect();
        let links = Some(builder.create_vector(&links));
        let channels: Vec<_> = self.channels.iter().map(|channel| channel.write(builder)).collect();
        let channels = Some(builder.create_vector(&channels));
        let drops = Some(drop_count::write_all(&self.drops, builder));
        let rates = self.links.iter().map(|link| link.rate_control.map(RateControl::to_wire));
        let rates: Option<Vec<_>> = rates.collect();
        let rates = rates.map(|rates| builder.create_vector(&rates));
        let arguments = wire_snapshot::SessionStatsArgs { links, channels, drops, rates };
        wire_snapshot::SessionStats::create(builder, &arguments)
    }

    fn read(session: wire_snapshot::SessionStats<'_>) -> Result<Self, Error> {
        let mut links = list("links", session.links(), LINK_COUNT_MAX, LinkStats::read)?;
        for (link, rate) in links.iter_mut().zip(session.rates().iter().flatten()) {
            link.rate_control = Some(RateControl::read(rate)?);
        }
        Ok(Self {
            links,
            channels: list("channels", session.channels(), CHANNEL_COUNT_MAX, ChannelStats::read)?,
            drops: drop_count::read_all(session.drops())?,
        })
    }
}

impl ProcessStats {
    fn write(
        &self,
        builder: &mut FlatBufferBuilder<'static>,
    ) -> WIPOffset<wire_snapshot::ProcessStats<'static>> {
        let values: Vec<_> = self.values.iter().map(|value| value.write(builder)).collect();
        let values = Some(builder.create_vector(&values));
        let drops = Some(drop_count::write_all(&self.drops, builder));
        let arguments = wire_snapshot::ProcessStatsArgs { values, drops };
        wire_snapshot::ProcessStats::create(builder, &arguments)
    }

    fn read(process: wire_snapshot::ProcessStats<'_>) -> Result<Self, Error> {
        Ok(Self {
            values: list("values", process.values(), Value::COUNT_MAX, Value::read)?,
            drops: drop_count::read_all(process.drops())?,
        })
    }
}

impl Value {
    /// Maximum number of values in one snapshot; a receiver refuses one with more.
    pub const COUNT_MAX: usize = 64;

    /// Returns a value that may rise and fall, in `unit`.
    pub fn of(name: &str, number: f64, unit: &str) -> Self {
        Self { name: name.to_owned(), number, unit: unit.to_owned(), total: false }
    }

    /// Returns a total without a unit, counted since the process began.
    pub fn total(name: &str, count: u64) -> Self {
        Self { name: name.to_owned(), number: count as f64, unit: String::new(), total: true }
    }

    /// Returns whether a receiver accepts the value: a finite number, and name and unit not too
    /// long.
    pub fn is_possible(&self) -> bool {
        self.number.is_finite()
            && self.name.len() <= NAME_BYTES_MAX
            && self.unit.len() <= UNIT_BYTES_MAX
    }

    fn write(
        &self,
        builder: &mut FlatBufferBuilder<'static>,
    ) -> WIPOffset<wire_snapshot::Value<'static>> {
        let name = Some(builder.create_string(&self.name));
        let unit = (!self.unit.is_empty()).then(|| builder.create_string(&self.unit));
        let arguments =
            wire_snapshot::ValueArgs { name, number: self.number, unit, total: self.total };
        wire_snapshot::Value::create(builder, &arguments)
    }

    fn read(value: wire_snapshot::Value<'_>) -> Result<Self, Error> {
        Ok(Self {
            name: text("values.name", value.name(), NAME_BYTES_MAX)?,
            number: number_f64("values.number", value.number(), f64::MIN, f64::MAX)?,
            unit: text("values.unit", value.unit().unwrap_or_default(), UNIT_BYTES_MAX)?,
            total: value.total(),
        })
    }
}

impl ChannelStats {
    fn write(
        &self,
        builder: &mut FlatBufferBuilder<'static>,
    ) -> WIPOffset<wire_snapshot::ChannelStats<'static>> {
        let mut arguments = wire_snapshot::ChannelStatsArgs::default();
        self.write_listed(&mut arguments, builder);
        self.units.write(&mut arguments);
        wire_snapshot::ChannelStats::create(builder, &arguments)
    }

    fn read(channel: wire_snapshot::ChannelStats<'_>) -> Result<Self, Error> {
        Ok(Self { units: UnitCounts::read(channel), ..Self::read_listed(channel)? })
    }
}

const CHANNEL_COUNT_MAX: usize = 32;
const UNIT_BYTES_MAX: usize = 16;

const KIND: Kind = Kind {
    name: "snapshot",
    identifier: Some(wire_snapshot::SNAPSHOT_IDENTIFIER),
    bytes_max: 64 * 1024,
    tables_max: 400,
    depth_max: 3,
};

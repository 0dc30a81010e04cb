use std::collections::{BTreeMap, VecDeque};

use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use crate::channel::{Channel, ChannelNumber, Order, Priority};
use crate::counters::{Counters, Discard};
use crate::error::SendError;
use crate::link::Entry;
use crate::wire::Coded;

/// Packets of capped channels, all except commands and media, that wait for their channel's cap.
///
/// At most [`BYTES_MAX`] and [`ENTRIES_MAX`] packets for each channel; a unit beyond that is
/// refused.
#[derive(Debug)]
pub(crate) struct Lanes {
    lanes: BTreeMap<ChannelNumber, Lane>,
    /// Earliest send time of the next packet that is copied to every link, of any channel.
    copies_at: Instant,
    /// Time before which no link is known to have headroom for data.
    data_at: Instant,
}

/// Queue of one channel.
#[derive(Debug)]
struct Lane {
    order: Order,
    priority: Priority,
    cap: Bitrate,
    /// Length of a packet's header, which the cap does not count. `None` if the cap counts complete
    /// datagrams, as on Tautline's own channels, which share a rate in datagram bytes.
    header_bytes: Option<usize>,
    queue: VecDeque<Waiting>,
    bytes: usize,
    /// Earliest send time of the next packet under the channel's cap.
    free_at: Instant,
}

/// Total length of the packets queued on a lane that are sent before a given unit, counted in two
/// ways.
#[derive(Debug, Default)]
struct Before {
    /// Total length of the packets' datagrams.
    datagrams: u64,
    /// Total length of the packets as the channel's cap counts it.
    counted: u64,
}

#[derive(Debug)]
struct Waiting {
    entry: Entry,
    /// True if a packet of the same unit was already sent.
    begun: bool,
}

impl Lanes {
    pub(crate) fn new(now: Instant) -> Self {
        Self { lanes: BTreeMap::new(), copies_at: now, data_at: now }
    }

    /// Returns whether no unit was ever passed to [`Lanes::push`]; false from then on, also while
    /// all queues are empty.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Queues the packets of a unit; all carry the same unit number.
    ///
    /// On a newest-wins channel, older units are displaced unless a part of one was already sent,
    /// even if the new unit is then refused. Displacing those too would abort every unit half sent
    /// when units arrive faster than the cap allows.
    ///
    /// # Errors
    /// [`SendError::OverCap`] if the cap alone delays the unit beyond its deadline.
    /// [`SendError::Congested`] if the queue is full, or if there are packets before the unit and
    /// sending both takes more than half of its lifetime, at `rate` or by the cap. Without this
    /// check, all units of an overloaded channel would expire half sent.
    pub(crate) fn push(
        &mut self,
        channel: &Channel,
        unit: Vec<Entry>,
        rate: Bitrate,
        counters: &mut Counters,
        now: Instant,
    ) -> Result<(), SendError> {
        let Some(cap) = channel.rate_cap else { return Err(SendError::Congested) };
        let (order, priority) = (channel.order, channel.priority);
        let lane = self.lanes.entry(channel.number).or_insert_with(|| Lane {
            order,
            priority,
            cap,
            header_bytes: (channel.number.get() >= APPLICATION_MIN)
                .then(|| Coded::header_bytes(channel.number)),
            queue: VecDeque::new(),
            bytes: 0,
            free_at: now - burst(priority),
        });
        lane.cap = cap;
        if lane.order == Order::NewestWins {
            let displaced = lane.remove(|waiting| !waiting.begun);
            counters.units_mut(channel.number).displaced += displaced;
            counters.discard_many(Discard::UnitDisplaced, displaced);
        }
        let bytes = unit.iter().map(|entry| entry.plaintext.len()).sum::<usize>();
        if lane.bytes + bytes > BYTES_MAX || lane.queue.len() + unit.len() > ENTRIES_MAX {
            return Err(SendError::Congested);
        }
        let Some(deadline) = unit.first().map(|first| first.deadline) else { return Ok(()) };
        let life = deadline.since(now);
        let before = lane.waiting_before(deadline);
        let found: u64 = unit.iter().map(|entry| lane.counted(entry)).sum();
        let free_at = lane.free_at.max(now - burst(priority));
        if (free_at + cap.time_for(ByteCount::new(found))).since(now) > life {
            let most = cap * deadline.since(free_at);
            return Err(SendError::OverCap { found: ByteCount::new(found), most });
        }
        let after: u64 = unit.iter().map(|entry| entry.datagram_bytes().get()).sum();
        let by_rate = rate.time_for(ByteCount::new(before.datagrams + after));
        let by_cap = (free_at + cap.time_for(ByteCount::new(before.counted + found))).since(now);
        // The link adds delay too, and the rate may fall.
        if before.datagrams > 0 && by_rate.max(by_cap) > life / 2 {
            return Err(SendError::Congested);
        }
        lane.bytes += bytes;
        for entry in unit {
            let later = lane.queue.iter().rev();
            let later = later.take_while(|other| other.entry.deadline > entry.deadline).count();
            let place = lane.queue.len() - later;
            lane.queue.insert(place, Waiting { entry, begun: false });
        }
        Ok(())
    }

    /// Drops the packets whose deadline has passed. Removes and returns the next packet to be
    /// copied to every link that the caps allow now, feedback before telemetry; `None` if there is
    /// none. `rate` is the maximum rate of all of these together.
    pub(crate) fn pop_copies(
        &mut self,
        rate: Bitrate,
        counters: &mut Counters,
        now: Instant,
    ) -> Option<Entry> {
        self.expire(counters, now);
        if now < self.copies_at {
            return None;
        }
        let entry = self.pop(|priority| priority != Priority::Data, |_| true, now)?;
        self.copies_at = now + rate.time_for(entry.datagram_bytes());
        Some(entry)
    }

    /// Drops the packets whose deadline has passed. Removes and returns the next data packet that
    /// its channel's cap allows now and that `fits`, of the first packets of each channel; `None`
    /// if there is none.
    pub(crate) fn pop_data(
        &mut self,
        fits: impl Fn(&Entry) -> bool,
        counters: &mut Counters,
        now: Instant,
    ) -> Option<Entry> {
        self.expire(counters, now);
        self.pop(|priority| priority == Priority::Data, fits, now)
    }

    /// Returns when the next packet that is copied to every link may be sent; `None` if none waits.
    pub(crate) fn copies_due_at(&self) -> Option<Instant> {
        Some(self.due_at(|priority| priority != Priority::Data)?.max(self.copies_at))
    }

    /// Returns when the next data packet may be sent; `None` if none waits.
    pub(crate) fn data_due_at(&self) -> Option<Instant> {
        Some(self.due_at(|priority| priority == Priority::Data)?.max(self.data_at))
    }

    /// Records that no link has headroom before `until`.
    pub(crate) fn hold_data(&mut self, until: Instant) {
        self.data_at = until;
    }

    /// Drops all packets and counts their units as expired.
    pub(crate) fn abandon(&mut self, counters: &mut Counters) {
        for (channel, lane) in &mut self.lanes {
            let expired = lane.remove(|_| true);
            counters.units_mut(*channel).expired += expired;
            counters.discard_many(Discard::UnitExpired, expired);
        }
    }

    /// Drops the packets whose deadline has passed, and counts their units as expired.
    fn expire(&mut self, counters: &mut Counters, now: Instant) {
        for (channel, lane) in &mut self.lanes {
            let expired = lane.remove(|waiting| waiting.entry.deadline < now);
            counters.units_mut(*channel).expired += expired;
            counters.discard_many(Discard::UnitExpired, expired);
        }
    }

    fn due_at(&self, of: impl Fn(Priority) -> bool) -> Option<Instant> {
        let waiting =
            self.lanes.values().filter(|lane| of(lane.priority) && !lane.queue.is_empty());
        waiting.map(|lane| lane.free_at).min()
    }

    fn pop(
        &mut self,
        of: impl Fn(Priority) -> bool,
        fits: impl Fn(&Entry) -> bool,
        now: Instant,
    ) -> Option<Entry> {
        let ready = self.lanes.values_mut().filter(|lane| {
            let first = lane.queue.front().is_some_and(|waiting| fits(&waiting.entry));
            of(lane.priority) && first && lane.free_at <= now
        });
        // Among equal priorities, the lane that has waited longest.
        ready.min_by_key(|lane| (lane.priority, lane.free_at))?.pop(now)
    }
}

impl Lane {
    fn pop(&mut self, now: Instant) -> Option<Entry> {
        let Waiting { entry, .. } = self.queue.pop_front()?;
        self.bytes -= entry.plaintext.len();
        let rest = self.queue.iter_mut().filter(|waiting| waiting.entry.unit == entry.unit);
        rest.for_each(|waiting| waiting.begun = true);
        let time = self.cap.time_for(ByteCount::new(self.counted(&entry)));
        self.free_at = self.free_at.max(now - burst(self.priority)) + time;
        Some(entry)
    }

    /// Returns the bytes of a packet that count against the cap.
    fn counted(&self, entry: &Entry) -> u64 {
        match self.header_bytes {
            Some(header) => entry.plaintext.len().saturating_sub(header) as u64,
            None => entry.datagram_bytes().get(),
        }
    }

    /// Returns the bytes of queued packets with deadlines up to `deadline`.
    fn waiting_before(&self, deadline: Instant) -> Before {
        let before = self.queue.iter().filter(|waiting| waiting.entry.deadline <= deadline);
        before.fold(Before::default(), |sum, Waiting { entry, .. }| Before {
            datagrams: sum.datagrams + entry.datagram_bytes().get(),
            counted: sum.counted + self.counted(entry),
        })
    }

    /// Removes the packets for which `which` is true, and returns the number of units that they
    /// belonged to.
    fn remove(&mut self, which: impl Fn(&Waiting) -> bool) -> u64 {
        let (mut units, mut last) = (0, None);
        let bytes = &mut self.bytes;
        self.queue.retain(|waiting| {
            let gone = which(waiting);
            if gone {
                *bytes -= waiting.entry.plaintext.len();
                units += u64::from(last != Some(waiting.entry.unit));
                last = Some(waiting.entry.unit);
            }
            !gone
        });
        units
    }
}

/// Returns how much of a pause counts: what the channel's cap allows in that time may be sent back
/// to back after it.
fn burst(priority: Priority) -> Duration {
    match priority {
        Priority::Data => DATA_BURST,
        Priority::Command | Priority::Feedback | Priority::Telemetry | Priority::Media => BURST,
    }
}

/// Lowest channel number of the application; those below are Tautline's own (docs/protocol.md, 4).
const APPLICATION_MIN: u8 = 16;
/// Maximum rate of all channels together that are copied to every link: half of a 1 Mbit/s link.
pub(crate) const COPIES_RATE: Bitrate = Bitrate::from_kbps(512);
/// Maximum rate of all channels together that are copied to every link, as a share of the slowest
/// link's rate: pictures matter more than telemetry about them.
pub(crate) const COPIES_SHARE: f64 = 0.25;
/// Largest datagram of a capped channel at an end that sends commands: 3 ms on a 1 Mbit/s link,
/// because one may be in transmission when a command is sent.
pub(crate) const DATAGRAM_WITH_COMMANDS: ByteCount = ByteCount::new(400);
/// Burst of a data channel: its cap applies per second; the links' headroom paces it within that.
const DATA_BURST: Duration = Duration::from_secs(1);
/// Burst of the feedback and telemetry channels: covers a late timer tick.
const BURST: Duration = Duration::from_millis(10);
const BYTES_MAX: usize = 256 << 10;
const ENTRIES_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Descriptor;

    fn channel(number: u8, order: Order, priority: Priority) -> Channel {
        Channel {
            number: ChannelNumber::new(number),
            order,
            priority,
            rate_cap: Some(Bitrate::from_kbps(80)),
            descriptor: Descriptor::default(),
        }
    }

    fn unit(number: u64, packets: usize, deadline: u64) -> Vec<Entry> {
        unit_of(number, packets, 77, deadline)
    }

    fn unit_of(number: u64, packets: usize, bytes: usize, deadline: u64) -> Vec<Entry> {
        let entry = || Entry {
            plaintext: vec![0; bytes],
            deadline: Instant::from_millis(deadline),
            unit: number,
            standing: 0,
            again: false,
        };
        (0..packets).map(|_| entry()).collect()
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(1_000 + millis)
    }

    #[test]
    fn a_newer_unit_displaces_an_older_one_that_has_not_begun() {
        let mut counters = Counters::new();
        let snapshot = channel(4, Order::NewestWins, Priority::Telemetry);
        let mut lanes = Lanes::new(at(0));
        let mut left = Vec::new();
        for number in 0..40 {
            let now = at(number * 5);
            let unit = unit(number, 2, 9_000);
            lanes.push(&snapshot, unit, COPIES_RATE, &mut counters, now).unwrap();
            left.extend(lanes.pop_copies(COPIES_RATE, &mut counters, now).map(|entry| entry.unit));
        }
        // 100 bytes at 80 kbit/s take 10 ms; every unit that began was sent to its end.
        assert!(left.len() >= 20, "{left:?}");
        assert!(left.chunks_exact(2).all(|pair| pair[0] == pair[1]), "{left:?}");
        let displaced = counters.units(snapshot.number).displaced;
        assert!(displaced > 25 && displaced == counters.discarded(Discard::UnitDisplaced));
    }

    #[test]
    fn feedback_goes_before_telemetry_and_each_within_its_cap() {
        let mut counters = Counters::new();
        let telemetry = channel(3, Order::ByDeadline, Priority::Telemetry);
        let feedback = channel(9, Order::ByDeadline, Priority::Feedback);
        let mut lanes = Lanes::new(at(0));
        lanes.push(&telemetry, unit(0, 30, 9_000), COPIES_RATE, &mut counters, at(0)).unwrap();
        lanes.push(&feedback, unit(0, 30, 9_000), COPIES_RATE, &mut counters, at(0)).unwrap();
        let mut left = 0;
        for millis in 0..100 {
            left += usize::from(
                lanes.pop_copies(Bitrate::from_mbps(100), &mut counters, at(millis)).is_some(),
            );
        }
        // Two channels at 10 ms per packet, and one packet ahead of its time each.
        assert!((20..=24).contains(&left), "{left}");
        assert_eq!(lanes.data_due_at(), None);
    }

    #[test]
    fn a_cap_holds_over_a_second_in_bytes_of_the_units() {
        let mut counters = Counters::new();
        let data = channel(20, Order::NewestWins, Priority::Data);
        let mut lanes = Lanes::new(at(5_000));
        let (mut taken, mut left) = (0, 0);
        // The cap is 10 kB/s; ten units of 936 bytes are offered per second.
        for millis in 0..10_000 {
            let now = at(5_000 + millis);
            if millis % 100 == 0 {
                let unit = unit_of(millis / 100, 9, 107, 5_500 + 1_000 + millis);
                let is_taken =
                    lanes.push(&data, unit, Bitrate::from_mbps(1), &mut counters, now).is_ok();
                taken += u32::from(is_taken);
            }
            while lanes.pop_data(|_| true, &mut counters, now).is_some() {
                left += 1;
            }
        }
        assert_eq!((taken, left), (100, 900), "all of it: 9 kB/s under a cap of 10");
        let twice = (0..200).map(|turn| {
            let now = at(15_000 + 50 * turn);
            let unit = unit_of(200 + turn, 9, 107, 16_500 + 50 * turn);
            let _ = lanes.push(&data, unit, Bitrate::from_mbps(1), &mut counters, now);
            std::iter::from_fn(|| lanes.pop_data(|_| true, &mut counters, now)).count()
        });
        let twice = twice.sum::<usize>() / 9;
        assert!((110..=125).contains(&twice), "{twice} of 200: twice the cap is offered");
        let large = unit_of(900, 256, 107, 27_500);
        let refused = lanes.push(&data, large, Bitrate::from_mbps(9), &mut counters, at(26_000));
        let most = match refused {
            Err(SendError::OverCap { most, .. }) => most.get(),
            other => panic!("{other:?}"),
        };
        assert!((10_000..=15_100).contains(&most), "a second's worth and half of one: {most}");
    }

    #[test]
    fn waiting_units_are_bounded_and_expire_at_their_deadline() {
        let mut counters = Counters::new();
        let data = channel(20, Order::ByDeadline, Priority::Data);
        let mut lanes = Lanes::new(at(0));
        let taken = (0..3_000)
            .filter(|number| {
                lanes
                    .push(
                        &data,
                        unit(*number, 1, 300_000),
                        Bitrate::from_mbps(1),
                        &mut counters,
                        at(0),
                    )
                    .is_ok()
            })
            .count();
        assert_eq!(taken, ENTRIES_MAX);
        assert!(lanes.pop_data(|_| true, &mut counters, at(0)).is_some());
        assert!(lanes.pop_data(|_| true, &mut counters, at(300_000)).is_none());
        assert_eq!(counters.units(data.number).expired, ENTRIES_MAX as u64 - 1);
        assert_eq!(lanes.data_due_at(), None);
    }
}

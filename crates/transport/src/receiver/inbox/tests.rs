use super::*;

struct Bench {
    inbox: Inbox,
    counters: Counters,
    outcomes: Vec<Outcome>,
}

impl Bench {
    fn new(channel: ChannelNumber, order: Order) -> Self {
        let inbox = Inbox::new(channel, order);
        Self { inbox, counters: Counters::new(), outcomes: Vec::new() }
    }

    fn media() -> Self {
        Self::new(ChannelNumber::MEDIA, Order::ByDeadline)
    }

    /// Handles a packet of a two-packet unit whose content is two bytes.
    fn packet(&mut self, number: u32, index: u8, deadline: u64, now: u64) {
        let content = [&Prefix::new(2, Instant::ZERO).to_bytes()[..], b"ab"].concat();
        let symbol = &content[usize::from(index) * 5..][..5];
        let channel = self.inbox.channel;
        let packet = Coded {
            channel,
            unit_low: number,
            index,
            source_count: 2,
            deadline_low: deadline as u16,
            symbol,
        };
        self.inbox.handle(
            &packet,
            Instant::from_millis(deadline),
            &mut self.counters,
            &mut self.outcomes,
            Instant::from_millis(now),
        );
    }

    fn unit(&mut self, number: u32, deadline: u64, now: u64) {
        self.packet(number, 0, deadline, now);
        self.packet(number, 1, deadline, now);
    }

    fn expire(&mut self, now: u64) {
        self.inbox.expire(&mut self.counters, &mut self.outcomes, Instant::from_millis(now));
    }

    /// Drains the outcomes and returns them as text: `+3` for unit 3 delivered, `-3 Late` for unit
    /// 3 lost.
    fn log(&mut self) -> Vec<String> {
        self.outcomes
            .drain(..)
            .map(|outcome| match outcome {
                Outcome::Unit { number, bytes, .. } => {
                    assert_eq!(bytes, b"ab");
                    format!("+{number}")
                }
                Outcome::Lost { number, reason } => format!("-{number} {reason:?}"),
            })
            .collect()
    }
}

#[test]
fn media_units_come_in_any_order_each_once() {
    let mut bench = Bench::media();
    bench.packet(0, 1, 100, 1);
    bench.unit(1, 100, 2);
    bench.packet(0, 0, 100, 3);
    bench.unit(1, 100, 4);
    assert_eq!(bench.log(), ["+1", "+0"]);
    assert_eq!(bench.counters.discarded(Discard::PacketSurplus), 2);
    assert_eq!(bench.counters.units(ChannelNumber::MEDIA).delivered, 2);
}

#[test]
fn a_unit_is_lost_once_at_its_deadline_and_not_delivered_later() {
    let mut bench = Bench::media();
    bench.packet(0, 0, 100, 1);
    bench.expire(100);
    assert_eq!(bench.log(), [""; 0]);
    bench.packet(0, 1, 100, 101);
    assert_eq!(bench.log(), ["-0 Incomplete"]);
    bench.unit(1, 100, 101);
    assert_eq!(bench.log(), ["-1 Late"]);
    assert_eq!(bench.counters.discarded(Discard::PacketLate), 1);
    assert_eq!(bench.counters.discarded(Discard::PacketSurplus), 2);
}

#[test]
fn missing_units_are_reported_at_their_successors_deadline() {
    let mut bench = Bench::media();
    bench.unit(3, 100, 1);
    assert_eq!(bench.log(), ["+3"]);
    bench.unit(1, 90, 50);
    bench.expire(101);
    assert_eq!(bench.log(), ["+1", "-0 Missing", "-2 Missing"]);
    bench.unit(5_000, 300, 102);
    bench.expire(301);
    assert_eq!(bench.log().len(), 1 + GAP_MAX as usize);
    assert_eq!(bench.counters.discarded(Discard::UnitMissing), 2 + 4_996);
}

#[test]
fn a_skipped_unit_whose_first_packet_is_late_is_not_delivered() {
    let mut bench = Bench::media();
    bench.unit(1, 200, 1);
    let content = [&Prefix::new(2, Instant::ZERO).to_bytes()[..], b"ab"].concat();
    let packet = Coded {
        channel: ChannelNumber::MEDIA,
        unit_low: 0,
        index: 0,
        source_count: 1,
        deadline_low: 100,
        symbol: &content,
    };
    let (deadline, now) = (Instant::from_millis(100), Instant::from_millis(101));
    bench.inbox.handle(&packet, deadline, &mut bench.counters, &mut bench.outcomes, now);
    assert_eq!(bench.log(), ["+1", "-0 Late"]);
}

#[test]
fn the_newest_command_wins() {
    let mut bench = Bench::new(ChannelNumber::COMMAND, Order::NewestWins);
    bench.packet(1, 0, 100, 1);
    bench.unit(2, 100, 2);
    bench.packet(1, 1, 100, 3);
    bench.unit(0, 100, 3);
    bench.unit(7, 100, 4);
    bench.expire(500);
    assert_eq!(bench.log(), ["+2", "+7"]);
    assert_eq!(bench.counters.discarded(Discard::UnitSuperseded), 2);
}

#[test]
fn memory_is_bounded_for_any_packets() {
    let mut bench = Bench::media();
    for number in 0..2_000 {
        bench.packet(number, 0, 10_000, 1);
    }
    assert_eq!(bench.inbox.units.len(), UNITS_MAX);
    assert_eq!(bench.inbox.bytes, UNITS_MAX * 5);
    assert_eq!(bench.counters.discarded(Discard::UnitEvicted), 2_000 - UNITS_MAX as u64);
    let big = vec![0; 60_000];
    for number in 2_000..2_200 {
        let packet = Coded {
            channel: ChannelNumber::MEDIA,
            unit_low: number,
            index: 0,
            source_count: 2,
            deadline_low: 0,
            symbol: &big,
        };
        bench.inbox.handle(
            &packet,
            Instant::from_millis(10_000),
            &mut bench.counters,
            &mut bench.outcomes,
            Instant::from_millis(2),
        );
        assert!(bench.inbox.bytes <= MEDIA_BYTES_MAX);
    }
    bench.expire(10_001);
    assert_eq!((bench.inbox.bytes, bench.inbox.units.len()), (0, 0));
}

#[test]
fn a_block_that_is_no_unit_is_dropped() {
    let mut bench = Bench::media();
    let content = [&Prefix::new(3, Instant::ZERO).to_bytes()[..], b"ab"].concat();
    let packet = Coded {
        channel: ChannelNumber::MEDIA,
        unit_low: 0,
        index: 0,
        source_count: 1,
        deadline_low: 0,
        symbol: &content,
    };
    let deadline = Instant::from_millis(100);
    bench.inbox.handle(&packet, deadline, &mut bench.counters, &mut bench.outcomes, Instant::ZERO);
    assert_eq!(bench.log(), ["-0 Malformed"]);
}

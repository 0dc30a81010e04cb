//! Media under the streaming code.

use std::collections::BTreeSet;

use tautline_scenario::direct::Direct;
use tautline_scenario::policies::planner;
use tautline_scenario::script::{Script, Step};
use tautline_sim::link::{BurstLoss, Jitter, Pair};
use tautline_transport::protect::Code;
use tautline_transport::{ChannelNumber, Discard, Event, UnitNumber};
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use crate::exchange::route;
use crate::harness::{Run, Scenario, clean, delay_ms, delivered_share, fixed, lossy, ms};

/// Returns 2 Mbit/s of media over 8 Mbit/s links, under the streaming code.
fn streamed(seed: u64, links: Vec<Pair>, code_rate: f64) -> Scenario {
    let mut scenario = Scenario::new(seed, links);
    scenario.config = fixed(7_000);
    scenario.config.protect.code = Code::Stream;
    let code = planner::Code::of_rate(code_rate);
    scenario.config.planner = planner::Kind::EarliestDelivery.factory(code);
    scenario.media.rate = Bitrate::from_mbps(2);
    scenario.length = Duration::from_secs(10);
    scenario
}

/// Asserts that every sent unit had exactly one outcome; the last ones may be in flight.
fn every_unit_ends_once(run: &Run) {
    let (sender, receiver) = (run.vehicle(), run.operator());
    let media = &receiver.application.media;
    let units = media.received.iter().map(|unit| unit.number);
    let mut seen = BTreeSet::new();
    for number in units.chain(media.lost.iter().map(|lost| lost.0)) {
        assert!(seen.insert(number), "unit {number:?} ended twice");
    }
    let offered = &sender.application.media.offered;
    let sent: BTreeSet<UnitNumber> = offered.iter().filter_map(|unit| unit.accepted).collect();
    assert!(seen.is_subset(&sent));
    let end = Instant::from_millis(9_500);
    let unended = offered.iter().filter(|unit| {
        unit.at < end && unit.accepted.is_some_and(|number| !seen.contains(&number))
    });
    assert_eq!(unended.count(), 0);
    let counters = receiver.session.counters();
    let lost = [Discard::UnitMissing, Discard::UnitIncomplete, Discard::UnitLate];
    let lost: u64 = lost.into_iter().map(|what| counters.discarded(what)).sum();
    assert_eq!(lost, media.lost.len() as u64);
    let units = receiver.session.units(ChannelNumber::MEDIA);
    assert_eq!((units.delivered, units.lost()), (media.received.len() as u64, lost));
    assert_eq!(counters.discarded(Discard::PacketInconsistent), 0);
    assert_eq!(counters.discarded(Discard::PacketMalformed), 0);
    assert_eq!(counters.discarded(Discard::PacketOutOfRange), 0);
}

#[test]
fn a_clean_link_delivers_every_unit_and_asks_for_nothing() {
    let run = streamed(1, vec![clean(8.0, 20.0)], 0.8).run();
    assert_eq!(delivered_share(&run, 500, 9_500), 1.0);
    every_unit_ends_once(&run);
    assert!(delay_ms(&run, 0.99) < 25.0, "{}", delay_ms(&run, 0.99));
    assert_eq!(run.vehicle().session.counters().repairs_asked, 0);
    assert_eq!(run.operator().session.units(ChannelNumber::MEDIA).repaired, 0);
}

#[test]
fn ten_and_twenty_percent_loss_are_repaired() {
    for (loss, code_rate, least) in [(0.1, 0.8, 0.999), (0.2, 0.7, 0.998), (0.2, 0.9, 0.995)] {
        let run = streamed(2, vec![lossy(8.0, 20.0, loss)], code_rate).run();
        let share = delivered_share(&run, 500, 9_500);
        assert!(share > least, "{loss} {code_rate}: {share}");
        every_unit_ends_once(&run);
        let (sent, came) = (run.vehicle().session.counters(), run.operator().session.counters());
        let repaired = run.operator().session.units(ChannelNumber::MEDIA).repaired;
        assert!(repaired > 300 && came.sources_recovered >= repaired);
        assert!(sent.repairs_asked > 0, "{loss} {code_rate}");
    }
}

#[test]
fn losses_in_bursts_are_repaired() {
    let mut link = clean(8.0, 20.0);
    // A tenth of the packets, four and more at a time.
    link.up.burst_loss = Some(BurstLoss { enter: 0.028, leave: 0.25, loss: 1.0 });
    let run = streamed(3, vec![link], 0.75).run();
    let share = delivered_share(&run, 500, 9_500);
    assert!(share > 0.998, "{share}");
    every_unit_ends_once(&run);
}

#[test]
fn of_two_links_one_may_be_cut() {
    for (seed, code_rate) in [(4, 0.5), (5, 0.8)] {
        let mut scenario = streamed(seed, vec![clean(8.0, 25.0), clean(8.0, 30.0)], code_rate);
        scenario.script = Script::from([(ms(3_000), Step::Cut(0)), (ms(6_000), Step::Restore(0))]);
        let run = scenario.run();
        assert_eq!(delivered_share(&run, 500, 2_900), 1.0);
        // Half of the packets have their repair on the other link. With less repair, lost packets
        // are requested after a round trip.
        let share = delivered_share(&run, 2_900, 3_300);
        assert!(share > 0.97, "{code_rate}: {share}");
        assert_eq!(delivered_share(&run, 3_300, 9_500), 1.0, "{code_rate}");
        every_unit_ends_once(&run);
    }
}

#[test]
fn repair_packets_go_over_another_link_than_what_they_protect() {
    let run = streamed(6, vec![clean(8.0, 20.0), clean(8.0, 22.0)], 0.5).run();
    let bytes: Vec<f64> =
        run.vehicle().session.links().map(|link| link.bytes_sent.get() as f64).collect();
    assert!((bytes[0] / bytes[1] - 1.0).abs() < 0.1, "{bytes:?}");
}

#[test]
fn packets_that_overtake_each_other_are_no_loss() {
    let mut links = vec![clean(8.0, 15.0), clean(8.0, 45.0)];
    for link in &mut links {
        link.up.jitter = Some(Jitter { sigma_ms: 4.0, tau_ms: 20.0 });
        link.up.reorder = true;
    }
    let run = streamed(7, links, 0.8).run();
    assert_eq!(delivered_share(&run, 500, 9_500), 1.0);
    every_unit_ends_once(&run);
    // Packets that were late and had been requested, next to 700 scheduled repair packets.
    let asked = run.vehicle().session.counters().repairs_asked;
    assert!(asked < 100, "{asked}");
}

#[test]
fn expired_units_leave_the_window_and_later_ones_arrive() {
    // An outage of half a second, many deadlines long, on the only link.
    let mut scenario = streamed(8, vec![lossy(8.0, 20.0, 0.05)], 0.7);
    scenario.media.deadline = Duration::from_millis(80);
    scenario.script = Script::from([(ms(3_000), Step::Cut(0)), (ms(3_500), Step::Restore(0))]);
    let run = scenario.run();
    assert!(delivered_share(&run, 500, 2_900) > 0.995);
    assert!(delivered_share(&run, 4_000, 9_500) > 0.995);
    every_unit_ends_once(&run);
}

#[test]
fn an_outage_leaves_no_lasting_loss_in_the_streaming_code() {
    // A repair packet after every fourth source packet, 15 % lost, 450 packets a second, an outage
    // of 600 packets. The sender gives up by deadlines, by its window of 512 source packets, or not
    // at all if it requests repair.
    for (deadline, asks) in [(200, false), (1_000, false), (5_000, false), (1_000, true)] {
        let mut scenario = streamed(12, vec![lossy(8.0, 20.0, 0.15)], 0.8);
        scenario.config.retransmit = asks;
        scenario.media.deadline = Duration::from_millis(deadline);
        scenario.script = Script::from([(ms(3_000), Step::Cut(0)), (ms(4_333), Step::Restore(0))]);
        scenario.length = Duration::from_secs(30);
        let run = scenario.run();
        let shares = [(500, 2_500), (4_333, 6_333), (6_333, 24_000)]
            .map(|(from, to)| delivered_share(&run, from, to));
        let least = if deadline == 200 { 0.97 } else { 0.99 };
        assert!(shares[2] > least, "deadline {deadline} ms, asks {asks}: {shares:?}");
    }
}

#[test]
fn deadlines_that_move_the_window_do_not_end_the_recovery() {
    // 18 % lost, so that busy times outlast a window of a second: 360 source packets, never full.
    let mut scenario = streamed(13, vec![lossy(8.0, 20.0, 0.18)], 0.8);
    scenario.config.retransmit = false;
    scenario.media.deadline = Duration::from_secs(1);
    scenario.script = Script::from([(ms(3_000), Step::Cut(0)), (ms(4_333), Step::Restore(0))]);
    scenario.length = Duration::from_secs(30);
    let share = delivered_share(&scenario.run(), 6_333, 24_000);
    assert!(share > 0.92, "{share}");
}

#[test]
fn sizes_and_shares_may_be_planned_jointly() {
    let mut scenario = streamed(9, vec![lossy(8.0, 20.0, 0.1); 3], 0.5);
    scenario.config.planner = tautline_transport::Config::default().planner;
    let run = scenario.run();
    let share = delivered_share(&run, 500, 9_500);
    assert!(share > 0.995, "{share}");
    every_unit_ends_once(&run);
}

#[test]
fn a_large_unit_and_the_smallest_datagrams_pass() {
    let mut scenario = streamed(10, vec![lossy(40.0, 20.0, 0.05); 2], 0.7);
    scenario.config.rate.initial = Bitrate::from_mbps(30);
    scenario.config.datagram_bytes_max = ByteCount::new(150);
    scenario.media.per_second = 30;
    let run = scenario.run();
    assert!(delivered_share(&run, 500, 9_500) > 0.99, "{}", delivered_share(&run, 500, 9_500));
    every_unit_ends_once(&run);
}

#[test]
fn two_runs_of_one_seed_are_equal() {
    let mut scenario = streamed(11, vec![lossy(8.0, 20.0, 0.1); 2], 0.8);
    scenario.script = Script::from([(ms(1_000), Step::Cut(0)), (ms(2_000), Step::Restore(0))]);
    scenario.length = Duration::from_secs(3);
    let digest = |scenario: &Scenario| scenario.run().world.log().digest();
    assert_eq!(digest(&scenario), digest(&scenario));
}

#[test]
fn a_receiver_takes_either_code() {
    let mut streams = fixed(8_000);
    streams.protect.code = Code::Stream;
    let mut sessions = Direct::new(&[route(1)], streams, fixed(8_000)).unwrap();
    sessions.run_until(ms(100));
    let unit: Vec<u8> = (0..5_000_u32).map(|i| b'a' + (i % 26) as u8).collect();
    let (deadline, now) = (Duration::from_millis(200), sessions.now);
    let send = |session: &mut tautline_transport::Session| {
        session.send(tautline_transport::ChannelNumber::MEDIA, &unit, deadline, now).unwrap();
    };
    send(&mut sessions.vehicle);
    send(&mut sessions.operator);
    sessions.run_until(ms(200));
    for session in [&mut sessions.vehicle, &mut sessions.operator] {
        let came = std::iter::from_fn(|| session.poll_event())
            .filter(|event| matches!(event, Event::Unit { bytes, .. } if *bytes == unit));
        assert_eq!(came.count(), 1);
    }
}

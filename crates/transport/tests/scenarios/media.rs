use std::collections::BTreeSet;

use tautline_scenario::script::{Script, Step};
use tautline_scenario::traffic::Received;
use tautline_sim::world::Clock;
use tautline_transport::{ChannelNumber, Discard, LossReason};
use tautline_units::{Bitrate, Duration};

use crate::harness::{Scenario, clean, delay_ms, delivered_share, fixed, lossy, ms};

#[test]
fn a_clean_link_delivers_every_unit_at_about_its_own_delay() {
    let mut scenario = Scenario::new(1, vec![clean(20.0, 20.0)]);
    scenario.config = fixed(18_000);
    let run = scenario.run();
    assert_eq!(delivered_share(&run, 500, 4_500), 1.0);
    assert_eq!(run.operator().application.media.lost, []);
    assert!(delay_ms(&run, 0.5) < 25.0, "{}", delay_ms(&run, 0.5));
    assert!(delay_ms(&run, 0.99) < 30.0, "{}", delay_ms(&run, 0.99));
    assert!(run.operator().application.commands.received.is_empty());
    let commands = &run.vehicle().application.commands.received;
    assert!(commands.len() > 200, "{}", commands.len());
    let mut delays = run.commands().into_iter().filter_map(|command| command.delay());
    assert!(delays.all(|delay| delay < Duration::from_millis(25)));
}

#[test]
fn media_goes_on_when_two_of_four_links_are_cut() {
    let mut scenario = Scenario::new(2, vec![clean(8.0, 25.0); 4]);
    scenario.config = fixed(6_000);
    scenario.script = Script::from([
        (ms(2_000), Step::Cut(0)),
        (ms(2_000), Step::Cut(2)),
        (ms(4_000), Step::Restore(0)),
    ]);
    scenario.length = Duration::from_secs(6);
    let run = scenario.run();
    assert_eq!(delivered_share(&run, 500, 1_900), 1.0);
    // Half of every block was on the dead links until they were found silent.
    assert!(delivered_share(&run, 1_900, 2_400) > 0.9, "{}", delivered_share(&run, 1_900, 2_400));
    assert_eq!(delivered_share(&run, 2_400, 5_700), 1.0);
}

#[test]
fn the_cut_of_one_of_four_links_costs_no_unit() {
    let mut scenario = Scenario::new(3, vec![clean(8.0, 25.0); 4]);
    scenario.config = fixed(6_000);
    scenario.script = Script::from([(ms(2_000), Step::Cut(1))]);
    let run = scenario.run();
    assert_eq!(delivered_share(&run, 500, 4_700), 1.0);
}

#[test]
fn ten_percent_loss_is_repaired() {
    let mut scenario = Scenario::new(4, vec![lossy(10.0, 20.0, 0.1); 4]);
    scenario.config = fixed(8_000);
    scenario.length = Duration::from_secs(10);
    let run = scenario.run();
    // Fewer than 4 of 8 arrive with probability 0.00043.
    let share = delivered_share(&run, 500, 9_500);
    assert!(share > 0.998, "{share}");
    assert!(run.operator().session.units(ChannelNumber::MEDIA).repaired > 500);
}

#[test]
fn late_units_are_never_delivered_and_each_unit_ends_once() {
    // The links carry a third of the traffic: queues grow to 300 ms.
    let mut scenario = Scenario::new(5, vec![clean(2.0, 30.0); 2]);
    for pair in &mut scenario.links {
        pair.up.queue_bytes = 75_000;
    }
    scenario.config = fixed(6_000);
    scenario.media.deadline = Duration::from_millis(100);
    let run = scenario.run();
    let receiver = run.operator();
    let (media, lost) = (&receiver.application.media.received, &receiver.application.media.lost);
    let error = receiver.session.clock().unwrap().error();
    // The wire format rounds a deadline up to a millisecond.
    let most = Duration::from_millis(101) + error;
    assert!(run.media().into_iter().filter_map(|unit| unit.delay()).all(|delay| delay <= most));
    let late = lost.iter().filter(|(_, r)| *r != LossReason::Missing).count();
    assert!(late > 50, "{late}");
    assert!(receiver.session.counters().discarded(Discard::PacketLate) > 0);
    let mut seen = BTreeSet::new();
    let ends = media.iter().map(|unit| unit.number).chain(lost.iter().map(|lost| lost.0));
    assert!(ends.into_iter().all(|number| seen.insert(number)), "a unit ended twice");
    let counters = receiver.session.counters();
    let told: u64 = [
        Discard::UnitMissing,
        Discard::UnitIncomplete,
        Discard::UnitLate,
        Discard::UnitEvicted,
        Discard::UnitMalformed,
    ]
    .map(|what| counters.discarded(what))
    .iter()
    .sum();
    assert_eq!(told, lost.len() as u64);
    let units = receiver.session.units(ChannelNumber::MEDIA);
    assert_eq!((units.delivered, units.lost()), (media.len() as u64, told));
    assert_eq!(units.heard, units.open + units.delivered + units.lost());
}

#[test]
fn skewed_clocks_give_true_delays_within_the_stated_error() {
    let hours = |hours: u64, ppm: f64| Clock::new(Duration::from_secs(hours * 3_600), ppm);
    for (seed, clocks) in [
        (6, [hours(7, 100.0), hours(0, -100.0)]),
        (7, [hours(0, -100.0), hours(30, 100.0)]),
        (8, [hours(1_000, 0.0), hours(1_000, 50.0)]),
    ] {
        let mut links = vec![clean(20.0, 12.0), clean(20.0, 40.0)];
        links[0].down.delay_ms = 31.0;
        let mut scenario = Scenario::new(seed, links);
        (scenario.clocks, scenario.config) = (clocks, fixed(6_000));
        scenario.length = Duration::from_secs(8);
        let run = scenario.run();
        assert_eq!(delivered_share(&run, 500, 7_500), 1.0);
        for (endpoint, up) in [(run.vehicle(), true), (run.operator(), false)] {
            let clock = endpoint.session.clock().unwrap();
            assert!(clock.error() <= Duration::from_micros(22_000), "{:?}", clock.error());
            let truth = [(12, 31), (40, 40)];
            for (link, (there, back)) in endpoint.session.links().zip(truth) {
                let (out, back) = if up { (there, back) } else { (back, there) };
                for (owd, truth) in [(link.owd_out, out), (link.owd_in, back)] {
                    let wrong = owd.unwrap().abs_diff(Duration::from_millis(truth));
                    // Pings also wait behind a media packet or two.
                    let most = clock.error() + Duration::from_millis(2);
                    assert!(wrong <= most, "{wrong:?} {:?}", clock.error());
                }
            }
        }
        for (endpoint, truth) in
            [(run.vehicle(), [(12, 31), (40, 40)]), (run.operator(), [(31, 12), (40, 40)])]
        {
            let trips: Vec<_> = endpoint.session.round_trips().collect();
            assert_eq!(trips.len(), 128, "the newest");
            assert!(trips.windows(2).all(|pair| pair[0].number + 1 == pair[1].number));
            for trip in trips {
                let (there, back) = truth[usize::from(trip.link.get())];
                let clock = trip.clock.unwrap();
                let out = trip.seen_at.signed_nanos_since(trip.sent_at) - clock.offset_nanos();
                let came = trip.back_at.signed_nanos_since(trip.answered_at) + clock.offset_nanos();
                for (half, truth) in [(out, there), (came, back)] {
                    let over = half - i64::from(truth) * 1_000_000;
                    let error = clock.error().as_nanos() as i64;
                    // Delays include media queueing, and are never too short.
                    assert!((-error..error + 10_000_000).contains(&over), "{over} {trip:?}");
                }
            }
        }
        let vehicle_at = |received: &Received| {
            let offered = run.vehicle().application.media.offered[received.index as usize];
            run.operator().clock().local(offered.at)
        };
        for unit in run.operator().application.media.received.iter().skip(100) {
            let wrong = unit.sent_at.unwrap().signed_nanos_since(vehicle_at(unit)).unsigned_abs();
            assert!(wrong < 22_001_000, "{wrong} ns");
        }
    }
}

#[test]
fn two_runs_of_one_seed_are_equal_event_for_event() {
    let mut scenario = Scenario::new(9, vec![lossy(8.0, 20.0, 0.05); 3]);
    scenario.script = Script::from([(ms(1_000), Step::Cut(0)), (ms(2_000), Step::Restore(0))]);
    scenario.length = Duration::from_secs(3);
    let digest = |scenario: &Scenario| {
        let run = scenario.run();
        assert!(run.world.log().lines_total() > 10_000);
        run.world.log().digest()
    };
    assert_eq!(digest(&scenario), digest(&scenario));
    if std::env::var_os("SIM_SEED").is_none() {
        let other = Scenario { seed: 10, ..scenario.clone() };
        assert_ne!(digest(&scenario), digest(&other));
    }
}

#[test]
fn the_newest_command_wins_on_links_of_different_delay() {
    let mut scenario = Scenario::new(11, vec![clean(8.0, 70.0), lossy(8.0, 10.0, 0.5)]);
    scenario.media.rate = Bitrate::from_kbps(100);
    let run = scenario.run();
    let commands = &run.vehicle().application.commands.received;
    assert!(
        commands.windows(2).all(|pair| pair[0].number < pair[1].number),
        "an older command came later"
    );
    let superseded = run.vehicle().session.counters().discarded(Discard::UnitSuperseded);
    assert!(superseded > 20, "{superseded}");
}

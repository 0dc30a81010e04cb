use tautline_scenario::measure;
use tautline_sim::link::{Config as LinkConfig, Pair};
use tautline_units::{Bitrate, Duration};

use crate::harness::{Run, Scenario, clean, delay_ms, ms};

/// Returns a 10 Mbit/s, 15 ms link with a return direction of `kbps` and a delay of `millis`.
fn with_way_back(kbps: u64, millis: u64) -> Pair {
    let down = LinkConfig::of_rate(Bitrate::from_kbps(kbps));
    Pair { down: down.with_delay(Duration::from_millis(millis)), ..clean(10.0, 15.0) }
}

fn run(seed: u64, links: Vec<Pair>) -> Run {
    let mut scenario = Scenario::new(seed, links);
    scenario.media.deadline = Duration::from_millis(100);
    scenario.config.media_deadline = scenario.media.deadline;
    scenario.length = Duration::from_secs(8);
    scenario.run()
}

/// Returns how many media units offered from 2.5 to 7.8 s had not arrived within 100 ms of world
/// time.
fn missed(run: &Run) -> usize {
    let units = run.media();
    let units = measure::within(&units, ms(2_500)..ms(7_800));
    units.filter(|unit| unit.on_time(Duration::from_millis(100)).is_none()).count()
}

/// Returns the maximum delay of the commands offered from 5 to 7.9 s; `None` if one did not arrive.
fn command_delay_most(run: &Run) -> Option<Duration> {
    let late =
        run.commands().into_iter().filter(|unit| (ms(5_000)..ms(7_900)).contains(&unit.offered.at));
    late.map(|unit| unit.delay()).try_fold(Duration::ZERO, |most, delay| Some(most.max(delay?)))
}

#[test]
fn a_low_rate_return_path_carries_reports_and_timely_commands() {
    for links in [1, 4] {
        let run = run(41, vec![with_way_back(128, 15); links]);
        assert_eq!(missed(&run), 0, "{links} links");
        let most = command_delay_most(&run).expect("every command comes");
        assert!(most < Duration::from_millis(60), "{most:?} over {links} links");
    }
}

#[test]
fn a_return_path_of_80_kbps_keeps_commands_timely() {
    let run = run(42, vec![with_way_back(80, 15), clean(10.0, 15.0), clean(10.0, 20.0)]);
    assert_eq!(missed(&run), 0);
    let most = command_delay_most(&run).expect("every command comes");
    assert!(most < Duration::from_millis(30), "{most:?}");
}

#[test]
fn media_is_in_time_with_an_asymmetric_round_trip() {
    let run = run(43, vec![with_way_back(10_000, 200)]);
    assert_eq!(missed(&run), 0);
    assert!(delay_ms(&run, 0.99) < 60.0, "{}", delay_ms(&run, 0.99));
    // The estimate for a command's age remains the midpoint of the bounds, with its error stated.
    for endpoint in [run.vehicle().session.clock(), run.operator().session.clock()] {
        assert!(endpoint.unwrap().error() > Duration::from_millis(105));
    }
}

#[test]
fn a_picture_as_one_unit_uses_the_links_capacity() {
    let mut scenario = Scenario::new(44, vec![clean(10.0, 15.0)]);
    scenario.media.per_second = 15;
    (scenario.media.large_every, scenario.media.large_factor) = (1, 1.0);
    scenario.media.rate = Bitrate::from_mbps(20);
    scenario.media.deadline = Duration::from_millis(100);
    scenario.config.media_deadline = scenario.media.deadline;
    scenario.length = Duration::from_secs(12);
    let run = scenario.run();
    let carried = measure::goodput(&run.media(), scenario.media.deadline, ms(4_000)..ms(11_500));
    assert!(carried > Bitrate::from_mbps(6), "{carried}");
}

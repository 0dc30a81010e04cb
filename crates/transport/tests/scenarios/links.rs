use tautline_scenario::script::{Script, Step};
use tautline_transport::Discard;
use tautline_transport::link::State;
use tautline_units::{Bitrate, Duration};

use crate::harness::{Scenario, clean, delivered_share, fixed, ms};

#[test]
fn with_all_links_silent_the_budget_is_zero_until_one_is_back() {
    let mut scenario = Scenario::new(21, vec![clean(8.0, 25.0); 2]);
    scenario.config = fixed(6_000);
    scenario.script = Script::from([
        (ms(1_500), Step::Cut(0)),
        (ms(1_500), Step::Cut(1)),
        (ms(4_000), Step::Restore(1)),
        (ms(5_000), Step::Restore(0)),
    ]);
    scenario.length = Duration::from_secs(7);
    let run = scenario.run();
    let budgets = &run.vehicle().application.budgets;
    let (zero_at, _) = budgets.iter().find(|(_, media)| *media == Bitrate::ZERO).unwrap();
    // The last pongs took 25 ms; then 250 ms pass without any.
    assert!((1_720..1_800).contains(&zero_at.as_millis()), "{zero_at:?}");
    let back = budgets.iter().find(|(at, media)| at > zero_at && *media > Bitrate::ZERO);
    let (back_at, _) = back.unwrap();
    assert!((4_050..4_260).contains(&back_at.as_millis()), "{back_at:?}");
    assert_eq!(delivered_share(&run, 4_300, 6_700), 1.0);
    let mut sent = run.media().into_iter().filter(|unit| unit.offered.accepted.is_some());
    assert!(sent.all(|unit| !(1_800..4_000).contains(&unit.offered.at.as_millis())));
    let states: Vec<_> =
        run.vehicle().application.states.iter().map(|(_, link, state)| (*link, *state)).collect();
    use State::{Silent, Up};
    assert_eq!(states, [(0, Up), (1, Up), (0, Silent), (1, Silent), (1, Up), (0, Up)]);
}

#[test]
fn a_nat_rebinding_moves_the_route_without_loss() {
    let mut scenario = Scenario::new(22, vec![clean(8.0, 25.0); 2]);
    scenario.config = fixed(6_000);
    scenario.script = Script::from([(ms(2_000), Step::Rebind(0, 4_444))]);
    let run = scenario.run();
    assert_eq!(run.operator().session.counters().routes_moved, 1);
    assert_eq!(delivered_share(&run, 500, 4_700), 1.0);
    let link = run.operator().session.links().next().unwrap();
    assert_eq!(link.route.remote.port(), 4_444);
    // Pongs went to the old port for a round trip: too short for the link to be silent.
    assert!(run.vehicle().application.states.iter().all(|(_, _, state)| *state == State::Up));
}

#[test]
fn the_only_link_survives_a_rebinding() {
    let mut scenario = Scenario::new(23, vec![clean(8.0, 25.0)]);
    scenario.config = fixed(6_000);
    scenario.script =
        Script::from([(ms(2_000), Step::Rebind(0, 4_444)), (ms(3_000), Step::Rebind(0, 4_445))]);
    let run = scenario.run();
    assert_eq!(run.operator().session.counters().routes_moved, 2);
    assert_eq!(delivered_share(&run, 500, 4_700), 1.0);
    assert!(run.vehicle().application.commands.received.len() > 200);
}

#[test]
fn an_operator_that_begins_anew_is_found_again() {
    let mut scenario = Scenario::new(25, vec![clean(8.0, 25.0); 2]);
    scenario.config = fixed(6_000);
    scenario.length = Duration::from_secs(2);
    let mut run = scenario.run();
    run.step(Step::RestartOperator(99));
    run.until(ms(7_000));
    assert_eq!(run.vehicle().application.established, 2);
    assert_eq!(delivered_share(&run, 5_500, 6_700), 1.0);
    assert!(run.operator().session.counters().discarded(Discard::DatagramUnknownSession) > 0);
}

#[test]
fn a_link_slower_than_the_deadline_gets_no_media_or_budget() {
    let mut scenario = Scenario::new(26, vec![clean(8.0, 25.0), clean(8.0, 400.0)]);
    scenario.config = fixed(6_000);
    scenario.media.rate = Bitrate::from_mbps(20);
    let run = scenario.run();
    assert_eq!(delivered_share(&run, 1_500, 4_500), 1.0);
    let (_, budget) = *run.vehicle().application.budgets.last().unwrap();
    assert!(budget < Bitrate::from_kbps(2_700), "{budget}");
    // Refused only before the slow link's delay was known.
    let refused = run.media().iter().filter(|unit| unit.offered.accepted.is_none()).count();
    assert!(refused < 100, "{refused}");
}

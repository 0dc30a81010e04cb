use tautline_scenario::cuts::{Choice, Measures};
use tautline_scenario::measure::quantile;
use tautline_scenario::script::{Script, Step};
use tautline_transport::Config;

use crate::harness::{Scenario, clean, delivered_share, fixed, ms};

#[test]
fn media_moves_off_a_link_whose_pongs_stop_and_no_unit_is_lost() {
    let mut scenario = Scenario::new(41, vec![clean(8.0, 25.0); 4]);
    scenario.config = fixed(4_000);
    scenario.script = Script::from([(ms(2_000), Step::Cut(0)), (ms(2_000), Step::Cut(1))]);
    let run = scenario.run();
    assert_eq!(delivered_share(&run, 500, 4_700), 1.0);
    assert!(run.vehicle().session.counters().media_moved > 0);
    // Half of the links leave the budget before they are silent.
    let budgets = &run.vehicle().application.budgets;
    let (before, after) = (2_000, 2_120);
    let at = |millis| budgets[budgets.partition_point(|(at, _)| at.as_millis() < millis) - 1].1;
    assert!(at(after) < at(before).scale(0.55), "{} {}", at(before), at(after));
}

/// `tautline lab run lte-cuts` prints the complete table: every choice, and more seeds.
#[test]
fn cutting_the_two_best_of_four_links_freezes_no_picture() {
    let mut measures = Measures::default();
    for seed in 0..3 {
        measures.add(Measures::of(Config::default(), Choice::Best(2), seed).unwrap());
    }
    // With other seeds both remaining links may stall at once: with 58 their last pongs arrive 10
    // and 44 ms after a cut, the next ones 328 and 351 ms after it.
    assert!(quantile(&mut measures.gaps, 1.0) < 290.0, "{:?}", measures.gaps);
    assert!(quantile(&mut measures.gaps, 0.9) < 145.0, "{:?}", measures.gaps);
    assert!(measures.share_after() > 0.991, "{}", measures.share_after());
}

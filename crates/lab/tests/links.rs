//! Tests of the harness of `tautline lab links`: its measures, and their reproducibility.

use std::time::Duration;

use tautline_lab::sweeps::links::case::Case;
use tautline_lab::sweeps::links::combo;
use tautline_lab::sweeps::links::drive::Drive;
use tautline_lab::sweeps::links::set::Set;
use tautline_lab::sweeps::links::summary;
use tautline_lab::sweeps::links::sweep::Sweep;
use tautline_sim::link::{Config, Pair};
use tautline_units::Bitrate;

fn set(name: &str) -> Set {
    Set::models().into_iter().find(|set| set.name == name).expect("a set of that name")
}

fn clean(mbps: u64, delay: Duration) -> Pair {
    Pair::symmetric(Config::of_rate(Bitrate::from_mbps(mbps)).with_delay(delay))
}

#[test]
fn a_sweep_finds_the_same_however_many_threads_make_it() {
    let sweep = |threads| Sweep {
        combos: combo::all()
            .into_iter()
            .filter(|c| c.name == "two-state/earliest/4-of-8")
            .collect(),
        sets: vec![set("driving-2")],
        cases: vec![Case::Plain, Case::Blackout],
        deadlines: vec![Duration::from_millis(65)],
        first_seed: 1,
        seeds: 2,
        length: Duration::from_secs(5),
        units_per_second: 360,
        rate_max: Bitrate::from_mbps(4),
        threads,
    };
    let found = sweep(1).run(&|_| {}).unwrap();
    let tables = [summary::runs_table(&found), summary::summary_table(&summary::of(&found))];
    let again = sweep(2).run(&|_| {}).unwrap();
    assert_eq!(tables[0].to_csv(), summary::runs_table(&again).to_csv());
    assert_eq!((tables[0].row_count(), tables[1].row_count()), (4, 2));
    for run in &found {
        let m = &run.measures;
        let (goodput_mbps, missed_max) = match run.case {
            Case::Blackout => (1.0..3.0, 0.4),
            _ => (3.0..4.0, 0.1),
        };
        assert!(goodput_mbps.contains(&m.goodput_mbps), "{m:?}");
        assert!(m.goodput_p5_mbps <= m.goodput_mbps, "{m:?}");
        assert!(m.offered > 700 && m.missed < missed_max, "{m:?}");
        assert!(m.overhead > 2.0, "{m:?}");
        assert!(m.delay_ms[0] > 25.0 && m.delay_ms.is_sorted(), "{m:?}");
        assert_eq!(m.datagrams.len(), 2);
        assert_eq!(m.outage.is_some(), run.case == Case::Blackout);
    }
    for plot in summary::plots(&summary::of(&found)) {
        plot.to_svg().unwrap();
    }
}

#[test]
fn a_clean_link_delivers_every_unit_after_its_delay() {
    let config = combo::all()[1].transport();
    let mut drive = Drive::new(vec![clean(8, Duration::from_millis(30)); 2], config, 1);
    drive.length = Duration::from_secs(4);
    drive.rate_max = Bitrate::from_mbps(1);
    let seen = drive.run().unwrap();
    assert_eq!((seen.missed, seen.refused, seen.paused), (0.0, 0.0, 0.0));
    assert_eq!(seen.offered, 720);
    // 347 bytes each, 360 times a second: rounding down loses less than a byte.
    assert!((0.99..1.0).contains(&seen.goodput_mbps), "{seen:?}");
    assert!((30.0..32.0).contains(&seen.delay_ms[0]), "{seen:?}");
    assert!(seen.gap_ms < 10.0, "{seen:?}");
    assert!((20.0..25.0).contains(&seen.command_gap_ms), "{seen:?}");
}

#[test]
fn a_link_that_is_used_alone_is_the_one_it_is_among_others() {
    let config = combo::all()[1].transport();
    let links = vec![clean(8, Duration::from_millis(20)), clean(2, Duration::from_millis(40))];
    let mut drive = Drive::new(links, config, 1);
    drive.length = Duration::from_secs(4);
    drive.rate_max = Bitrate::from_kbps(300);
    drive.only = Some(1);
    let seen = drive.run().unwrap();
    assert_eq!(seen.datagrams[0], 0);
    assert!(seen.datagrams[1] > 1_000, "{seen:?}");
    assert!((40.0..50.0).contains(&seen.delay_ms[0]), "{seen:?}");
}

#[test]
fn a_blackout_is_noticed_and_got_over() {
    let config = combo::all()[1].transport();
    let mut drive = Drive::new(vec![clean(8, Duration::from_millis(20)); 2], config, 1);
    drive.length = Duration::from_secs(8);
    drive.rate_max = Bitrate::from_mbps(1);
    Case::Blackout.befall(&mut drive);
    let outage = drive.run().unwrap().outage.unwrap();
    assert!((20.0..75.0).contains(&outage.notice_ms), "{outage:?}");
    assert!((100.0..300.0).contains(&outage.recover_ms), "{outage:?}");
    assert_eq!(outage.missed_beyond, 0, "{outage:?}");
}

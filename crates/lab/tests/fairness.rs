//! Tests of the harness of `tautline lab fairness`: two flows share a link, with plausible and
//! reproducible measures.

use tautline_lab::sweeps::fairness::bottleneck::Bottleneck;
use tautline_lab::sweeps::fairness::pairing::Pairing;
use tautline_lab::sweeps::fairness::summary;
use tautline_lab::sweeps::fairness::sweep::{Found, Sweep};
use tautline_units::Duration;

/// Returns a sweep over 3 Mbit/s with a queue of 60 ms, in which 5 s are measured.
fn sweep(pairings: Vec<Pairing>, threads: usize) -> Sweep {
    Sweep {
        bottlenecks: Bottleneck::all().into_iter().filter(|it| it.name == "3mbps-60ms").collect(),
        pairings,
        first_seed: 1,
        seeds: 1,
        length: Duration::from_secs(25),
        threads,
    }
}

fn find(sweep: &Sweep) -> Vec<Found> {
    sweep.run(&|_| {}).expect("sessions and links that can be configured so")
}

#[test]
fn two_share_a_link_and_the_same_seed_shows_the_same() {
    let both = sweep(vec![Pairing::Together, Pairing::Cubic], 2);
    let found = find(&both);
    let [two, cubic] = &found[..] else { panic!("two runs of {}", found.len()) };
    // The shares are not judged. The test only checks that both flows are present, two sessions
    // with at least a fifth each, and that nothing is counted twice.
    for (run, least) in [(two, 0.2), (cubic, 0.01)] {
        let m = &run.measures;
        let used = m.shares[0] + m.shares[1];
        assert!((0.6..1.1).contains(&used), "{m:?}");
        assert!(m.shares.iter().all(|share| (least..1.0 - least).contains(share)), "{m:?}");
        assert!((0.5..=1.0).contains(&m.jain), "{m:?}");
        // The queue's 60 ms include the rest of the datagram being sent.
        assert!(m.waiting_ms.is_sorted() && m.waiting_ms[3] <= 60.0, "{m:?}");
        assert!((0.999..1.001).contains(&m.causes.values().sum::<f64>()), "{m:?}");
        assert_eq!(m.by_second[0].len(), 25);
    }
    assert_eq!((two.measures.in_time_mbps.len(), cubic.measures.in_time_mbps.len()), (2, 1));
    assert!(two.measures.alike.is_some() && cubic.measures.alike.is_none());
    let again = find(&sweep(vec![Pairing::Together], 1));
    let [again] = &again[..] else { panic!("one run") };
    assert_eq!(again.measures, two.measures);

    let lines = summary::of(&both, &found);
    assert_eq!((lines.len(), summary::runs_table(&found).row_count()), (2, 2));
    assert_eq!(summary::seconds_table(&found).row_count(), 50);
    let csv = summary::summary_table(&lines).to_csv();
    for quantity in ["share_percent", "share_other_percent", "jain", "missed_percent"] {
        assert_eq!(csv.matches(&format!(",{quantity},")).count(), 2, "{csv}");
    }
    let cells = lines[0].cells();
    assert_eq!(&cells[..2], ["3mbps-60ms", "tautline"]);
    assert!(cells[2..12].iter().all(|cell| cell.starts_with(|c: char| c.is_ascii_digit())));
    for plot in summary::plots(&found) {
        plot.to_svg().expect("lines to draw");
    }
}

#[test]
fn a_missing_feature_has_a_row_that_says_how_to_build_it() {
    let gcc = sweep(vec![Pairing::Gcc], 1);
    let found = find(&gcc);
    let lines = summary::of(&gcc, &found);
    let cells = lines[0].cells();
    match Pairing::Gcc.missing() {
        Some(missing) => {
            assert!(found.is_empty());
            assert!(missing.contains("--features gcc"), "{missing}");
            assert_eq!(cells.last().map(String::as_str), Some(missing));
            assert!(cells[2..cells.len() - 1].iter().all(|cell| cell == "-"), "{cells:?}");
        }
        None => {
            let m = &found[0].measures;
            assert!(m.shares.iter().all(|share| (0.05..0.95).contains(share)), "{m:?}");
        }
    }
}

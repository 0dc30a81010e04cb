use tautline_sim::preset::{Carrier, Preset};
use tautline_units::{Bitrate, Instant};

use crate::harness::{Run, Scenario, Step, clean, fixed};

/// Which links a person cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    /// Those that were granted the most.
    Best(usize),
    /// Each set of this size in turn.
    Any(usize),
}

/// What the operator saw.
#[derive(Debug, Default)]
struct Seen {
    /// Longest time without a delivered unit from each cut on, ms.
    gaps: Vec<f64>,
    /// Units sent within the second after each cut, and those of them that came.
    sent_after: usize,
    came_after: usize,
    sent: usize,
    delays: Vec<f64>,
    /// The budget, Mbit/s, every 100 ms.
    budgets: Vec<f64>,
    granted: Vec<f64>,
}

const CARRIERS: [Carrier; 4] = [Carrier::A, Carrier::A, Carrier::B, Carrier::B];
const PAIRS: [[usize; 2]; 6] = [[0, 1], [2, 3], [0, 2], [1, 3], [0, 3], [1, 2]];
/// A cut of three seconds every ten.
const FIRST_MS: u64 = 12_000;
const CUT_MS: u64 = 3_000;
const CYCLE_MS: u64 = 10_000;
const CUTS: u64 = 4;

/// Four driving links with a cut every ten seconds.
fn drive(seed: u64, choice: Option<Choice>, seen: &mut Seen) {
    let links = (0..4).map(|at| Preset::LteDriving.pair_of(CARRIERS[at as usize], seed * 4 + at));
    let mut scenario = Scenario::new(seed + 100, links.collect());
    scenario.media_most = Bitrate::from_mbps(6);
    scenario.run_ms = FIRST_MS;
    let mut run = scenario.run();
    for cycle in 0..CUTS {
        let at = FIRST_MS + cycle * CYCLE_MS;
        run.until(at);
        let cut = choice.map_or(Vec::new(), |choice| chosen(choice, &run, seed + cycle));
        cut.iter().for_each(|link| run.step(Step::Cut(*link)));
        run.until(at + CUT_MS);
        cut.iter().for_each(|link| run.step(Step::Restore(*link)));
        seen.gaps.push(longest_gap(&run, at, at + CUT_MS));
        let within = |t: Instant| (at..at + 1_000).contains(&t.as_millis());
        seen.sent_after += run.sender().sent.iter().filter(|sent| within(sent.at)).count();
        seen.came_after += run.receiver().media.iter().filter(|u| within(u.sent_world)).count();
    }
    run.until(FIRST_MS + CUTS * CYCLE_MS);
    let settled = |t: Instant| t.as_millis() >= 3_000;
    seen.sent += run.sender().sent.iter().filter(|sent| settled(sent.at)).count();
    let media = run.receiver().media.iter().filter(|unit| settled(unit.sent_world));
    seen.delays.extend(media.map(|unit| unit.delay.as_secs_f64() * 1e3));
    let budgets = &run.sender().budgets;
    for tick in 30..(FIRST_MS + CUTS * CYCLE_MS) / 100 {
        let before = budgets.partition_point(|(at, _)| at.as_millis() <= tick * 100);
        seen.budgets.push(before.checked_sub(1).map_or(0.0, |i| budgets[i].1.as_f64() / 1e6));
    }
    seen.granted.extend(run.sender().session.links().map(|link| link.granted.as_f64() / 1e6));
}

fn chosen(choice: Choice, run: &Run, turn: u64) -> Vec<usize> {
    match choice {
        Choice::Best(count) => {
            let mut links: Vec<_> = run.sender().session.links().enumerate().collect();
            links.sort_by_key(|(at, link)| (std::cmp::Reverse(link.granted), *at));
            links.into_iter().take(count).map(|(at, _)| at).collect()
        }
        Choice::Any(1) => vec![turn as usize % 4],
        Choice::Any(_) => PAIRS[turn as usize % 6].to_vec(),
    }
}

fn longest_gap(run: &Run, from: u64, to: u64) -> f64 {
    let mut came: Vec<f64> = run
        .receiver()
        .media
        .iter()
        .map(|unit| (unit.sent_world + unit.delay).as_nanos() as f64 / 1e6)
        .filter(|at| (from as f64..to as f64).contains(at))
        .collect();
    came.sort_by(f64::total_cmp);
    let ends = came.iter().copied().chain([to as f64]);
    let starts = [from as f64].into_iter().chain(came.iter().copied());
    starts.zip(ends).map(|(start, end)| end - start).fold(0.0, f64::max)
}

fn quantile(values: &mut [f64], quantile: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * quantile).round() as usize]
}

fn measure(choice: Option<Choice>, seeds: u64) -> Seen {
    let workers = 2;
    let runs: Vec<Seen> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..workers)
            .map(|worker| {
                scope.spawn(move || {
                    let mut seen = Seen::default();
                    (0..seeds)
                        .filter(|seed| seed % workers == worker)
                        .for_each(|seed| drive(seed, choice, &mut seen));
                    seen
                })
            })
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let mut seen = Seen::default();
    for run in runs {
        seen.gaps.extend(run.gaps);
        seen.sent_after += run.sent_after;
        seen.came_after += run.came_after;
        seen.sent += run.sent;
        seen.delays.extend(run.delays);
        seen.budgets.extend(run.budgets);
        seen.granted.extend(run.granted);
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (p50, p95) = (quantile(&mut seen.gaps, 0.5), quantile(&mut seen.gaps, 0.95));
    let over = seen.gaps.iter().filter(|gap| **gap > 200.0).count();
    println!(
        "{choice:?}: gap p50 {p50:.0} p95 {p95:.0} p99 {:.0} worst {:.0} ms, {over} of {} over 200; \
         second after {:.2} %; all {:.2} %, delay p50 {:.1} p95 {:.1} p99 {:.1} ms; \
         budget mean {:.2} p5 {:.2}, granted {:.2} p10 {:.2} Mbit/s",
        quantile(&mut seen.gaps, 0.99),
        quantile(&mut seen.gaps, 1.0),
        seen.gaps.len(),
        seen.came_after as f64 / seen.sent_after as f64 * 100.0,
        seen.delays.len() as f64 / seen.sent as f64 * 100.0,
        quantile(&mut seen.delays, 0.5),
        quantile(&mut seen.delays, 0.95),
        quantile(&mut seen.delays, 0.99),
        mean(&seen.budgets),
        quantile(&mut seen.budgets, 0.05),
        mean(&seen.granted),
        quantile(&mut seen.granted, 0.1),
    );
    seen
}

#[test]
fn media_moves_off_a_link_whose_pongs_stop_and_no_unit_is_lost() {
    let mut scenario = Scenario::new(41, vec![clean(8.0, 25.0); 4]);
    scenario.config = fixed(4_000);
    scenario.steps = vec![(2_000, Step::Cut(0)), (2_000, Step::Cut(1))];
    let run = scenario.run();
    assert_eq!(run.delivered_share(500, 4_700), 1.0);
    assert!(run.sender().session.counters().media_moved > 0);
    // Half the links are gone from the budget before they are silent.
    let budgets = &run.sender().budgets;
    let (before, after) = (2_000, 2_120);
    let at = |millis| budgets[budgets.partition_point(|(at, _)| at.as_millis() < millis) - 1].1;
    assert!(at(after) < at(before).scale(0.55), "{} {}", at(before), at(after));
}

/// Four cuts a seed; SIM_SEEDS=50 runs fifty seeds.
#[test]
fn a_cut_of_the_two_best_of_four_driving_links_does_not_freeze_the_picture() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let mut seen = measure(Some(Choice::Best(2)), number("SIM_SEEDS").unwrap_or(3));
    // Both survivors may stall at once: with seed 58 their last pongs come 10 and 44 ms after a
    // cut, the next ones 328 and 351 ms after it.
    assert!(quantile(&mut seen.gaps, 1.0) < 450.0, "{:?}", seen.gaps);
    assert!(quantile(&mut seen.gaps, 0.9) < 200.0, "{:?}", seen.gaps);
    let share = seen.came_after as f64 / seen.sent_after as f64;
    assert!(share > 0.97, "{share}");
}

/// SIM_SEEDS=50 runs fifty seeds and every choice.
#[test]
#[ignore = "a table, of a minute"]
fn table_of_cuts() {
    let seeds = std::env::var("SIM_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let choices = [
        None,
        Some(Choice::Best(1)),
        Some(Choice::Any(1)),
        Some(Choice::Best(2)),
        Some(Choice::Any(2)),
    ];
    for choice in choices {
        measure(choice, seeds);
    }
}

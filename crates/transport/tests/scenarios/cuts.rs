use tautline_sim::preset::{Carrier, Preset};
use tautline_units::{Bitrate, Instant};

use crate::harness::{Run, Scenario, Step};

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
        if std::env::var_os("CUTS_VERBOSE").is_some() {
            let gap = longest_gap(&run, at, at + CUT_MS);
            println!("seed {seed} cycle {cycle} cut {cut:?} gap {gap:.0}");
        }
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
    let only = std::env::var("CUTS_ONLY").ok();
    for choice in choices {
        if only.as_ref().is_some_and(|only| !only.contains(&format!("{choice:?}"))) {
            continue;
        }
        measure(choice, seeds);
    }
}

#[test]
#[ignore = "debug"]
fn trace_one() {
    let get = |name: &str| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let (seed, cycle) = (get("SEED"), get("CYCLE"));
    let choice = Choice::Best(2);
    let links = (0..4).map(|at| Preset::LteDriving.pair_of(CARRIERS[at as usize], seed * 4 + at));
    let mut scenario = Scenario::new(seed + 100, links.collect());
    scenario.media_most = Bitrate::from_mbps(6);
    scenario.run_ms = FIRST_MS;
    let mut run = scenario.run();
    for c in 0..=cycle {
        let at = FIRST_MS + c * CYCLE_MS;
        run.until(at);
        let cut = chosen(choice, &run, seed + c);
        cut.iter().for_each(|link| run.step(Step::Cut(*link)));
        if c == cycle {
            println!("cut {cut:?}");
            for step in 0..150 {
                let t = at + step * 20;
                run.until(t + 20);
                let sent = run
                    .sender()
                    .sent
                    .iter()
                    .filter(|s| (t..t + 20).contains(&s.at.as_millis()))
                    .count();
                let came: Vec<_> = run
                    .receiver()
                    .media
                    .iter()
                    .filter(|u| (t..t + 20).contains(&(u.sent_world + u.delay).as_millis()))
                    .map(|u| u.delay.as_millis())
                    .collect();
                let b = run.sender().budgets.last().unwrap().1;
                print!(
                    "{:4} sent {sent} came {} {:?} refused {} budget {:.2} ",
                    step * 20,
                    came.len(),
                    came.iter().max(),
                    run.sender().media_refused,
                    b.as_f64() / 1e6
                );
                for l in run.sender().session.links() {
                    print!(
                        "| {:.1} q{} rtt {} ",
                        l.granted.as_f64() / 1e6,
                        l.queued.get(),
                        l.rtt.map_or(0, |d| d.as_millis())
                    );
                }
                let c = run.sender().session.counters();
                println!(
                    "moved {} exp {} unsched {} sil {}",
                    c.media_moved,
                    c.discarded(tautline_transport::Discard::MediaExpired),
                    c.discarded(tautline_transport::Discard::MediaUnschedulable),
                    c.discarded(tautline_transport::Discard::MediaSilenced)
                );
            }
        }
        run.until(at + CUT_MS);
        cut.iter().for_each(|link| run.step(Step::Restore(*link)));
    }
}

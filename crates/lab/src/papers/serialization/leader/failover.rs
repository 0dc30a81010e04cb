//! Measurements of three computers that agree on one: never two act at once, and the time until
//! another acts.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use tautline_message::{Builder, QuorumStep};
use tautline_net::clock::Clock;
use tautline_units::Instant;

use super::super::codecs::published;
use super::trial::{FAULTS, Fault, Reign, TIMEOUT_HEARTBEATS, Trial, Trust};
use crate::experiment::{Findings, Outcome, Row, Run, Table};
use crate::machine;
use crate::pictures::coding::{quantile, sorted};
use crate::plot::{Axis, Plot, Series};
use crate::workers;

/// Runs chaos tests for safety, then failovers by heartbeat and fault for speed.
pub(super) fn run(run: &Run<'_>) -> Result<Outcome> {
    let tests = run.choose(60, 10_000);
    let first = run.seed.wrapping_mul(1_000_003);
    let jobs: Vec<u64> = (0..tests).collect();
    let total = tests + HEARTBEATS_MS.len() as u64;
    let tried = workers::each(
        workers::count(),
        &jobs,
        |test| {
            let heartbeat = HEARTBEATS_MS[*test as usize % HEARTBEATS_MS.len()];
            chaos_test(first.wrapping_add(*test), heartbeat, &Trust::SOUND)
        },
        |done, _| run.progress(done as u64, total, "chaos tests"),
    )?;
    let (mut reigns, mut clashes) = (0, Vec::new());
    for chaos in tried {
        match chaos {
            Chaos::Reigns(count) => reigns += count,
            Chaos::Clash(told) => clashes.push(told),
        }
    }
    let mut table = Table::new("failover", COLUMNS);
    let mut curves: Vec<(Fault, Vec<(f64, f64)>)> = FAULTS.map(|fault| (fault, vec![])).to_vec();
    let (mut shown, mut rows, mut failover_count) = (Vec::new(), Vec::new(), 0);
    for (done, heartbeat) in HEARTBEATS_MS.into_iter().enumerate() {
        run.progress(tests + done as u64, total, "failovers");
        for (fault, curve) in &mut curves {
            let count = run.choose(8, 200);
            let made = failovers(run.seed, heartbeat, *fault, count)?;
            failover_count += count;
            clashes.extend(made.clashes);
            let durations = sorted(made.durations.iter().copied());
            let [median, worst] = [0.5, 1.0].map(|share| quantile(&durations, share));
            let idle = quantile(&sorted(made.unled.into_iter()), 0.5);
            let name = name(*fault);
            table.push([name.into(), heartbeat.into(), median.into(), worst.into(), idle.into()]);
            curve.push((heartbeat as f64, median));
            if heartbeat == SHOWN_MS {
                rows.push(
                    Row::new(format!("failover, leader {name}, median"), "ms", median)
                        .reference(f64::from(TIMEOUT_HEARTBEATS) * heartbeat as f64)
                        .at_most(2.0)
                        .because("set by hand: an election after the timeout takes less than the timeout again")
                        .note("heartbeat 10 ms; the reference is the timeout of 5 of them"),
                );
                shown.push(made.durations);
            }
        }
    }
    rows.push(alike(&shown));
    rows.insert(
        0,
        Row::new("runs in which two act at once", "", clashes.len() as f64)
            .reference(0.0)
            .within_absolute(0.0)
            .because("two that steer at once are never right")
            .note(format!(
                "counted over {tests} chaos tests of {FAULTS_A_TEST} faults each, with {reigns} reigns, and \
                 {failover_count} failovers{}",
                clashes.iter().map(|told| format!("; {told}")).collect::<String>()
            )),
    );
    let [ours, json] = step_costs(run)?;
    rows.push(Row::new("a step encoded and decoded, Tautline", "ns", ours * 1e9).clocked());
    rows.push(Row::new("a step encoded and decoded, JSON", "ns", json * 1e9).clocked());
    let budgets = budgets([ours, json], &mut rows)?;
    let mut plot = Plot::new(
        "failover",
        "From the leader's failure to another that acts",
        Axis::log("heartbeat, ms"),
        Axis::log("ms, median"),
    );
    for (fault, curve) in curves {
        plot = plot.with(Series::marked(name(fault), curve));
    }
    Ok(Outcome::Measured(Findings {
        tables: vec![table, budgets],
        plots: vec![plot],
        rows,
        notes: notes(),
    }))
}

/// Outcome of a chaos test.
enum Chaos {
    /// Number of reigns, with no two at once.
    Reigns(u64),
    /// Two simultaneous reigns, as text that begins with the seed.
    Clash(String),
}

/// Runs one chaos test: [`FAULTS_A_TEST`] random faults of three members whose links lose
/// datagrams.
fn chaos_test(seed: u64, heartbeat_ms: u64, trust: &Trust) -> Result<Chaos> {
    let mut trial = Trial::new(seed, Duration::from_millis(heartbeat_ms), true, trust)?;
    trial.befall(FAULTS_A_TEST);
    Ok(match trial.overlap() {
        None => Chaos::Reigns(trial.reign_count() as u64),
        Some(overlap) => Chaos::Clash(clash(seed, &overlap)),
    })
}

/// Results of several failovers, in the order of their seeds.
struct Failovers {
    /// Time from the fault until another member acts as leader, ms.
    durations: Vec<f64>,
    /// Time from the end of the old leader's lease until then, in which nobody acts, ms.
    unled: Vec<f64>,
    /// Failovers in which two act at once, as text.
    clashes: Vec<String>,
}

fn failovers(seed: u64, heartbeat: u64, fault: Fault, count: u64) -> Result<Failovers> {
    let mut made = Failovers { durations: vec![], unled: vec![], clashes: vec![] };
    for at in 0..count {
        let seed = seed.wrapping_mul(7919).wrapping_add(at);
        let mut trial = Trial::new(seed, Duration::from_millis(heartbeat), false, &Trust::SOUND)?;
        let failover = trial.fail_over(fault);
        let Some(failover) = failover else { anyhow::bail!("nobody takes over: SIM_SEED={seed}") };
        made.clashes.extend(trial.overlap().map(|overlap| clash(seed, &overlap)));
        made.durations.push(failover.duration.as_secs_f64() * 1e3);
        made.unled.push(failover.unled.as_secs_f64() * 1e3);
    }
    Ok(made)
}

fn clash(seed: u64, overlap: &(Reign, Reign)) -> String {
    format!("SIM_SEED={seed}, {overlap:?}")
}

/// Returns a row with the share of seeds whose failover took exactly the same time for all faults.
fn alike(by_fault: &[Vec<f64>]) -> Row {
    let [first, others @ ..] = by_fault else { unreachable!("there are faults") };
    let is_alike = |seed: &usize| others.iter().all(|other| other[*seed] == first[*seed]);
    let share = (0..first.len()).filter(is_alike).count() as f64 / first.len() as f64;
    Row::new("failovers as long for each of the three faults", "%", share * 100.0).note(
        "Of each seed the three differ in the fault alone, and the members that are left notice one thing \
         of it: that heartbeats stop. So the medians are equal.",
    )
}

/// Returns a table with the cost of a message by codec, the shortest heartbeat at which the
/// leader's messages cost no more than [`SHARE_OF_CORE`], and its timeout. Adds a row with each
/// timeout to `rows`.
fn budgets([ours, json]: [f64; 2], rows: &mut Vec<Row>) -> Result<Table> {
    let mut table =
        Table::new("budget", ["codec", "message_us", "heartbeat_ms_at_least", "timeout_ms"]);
    let dds = published()?.into_iter().find(|line| line.paper == "Commercial DDS");
    let [encode, decode, ..] = dds.context("Table 1 has a commercial DDS")?.micros;
    let costs = [
        ("Tautline", ours * 1e6, ""),
        ("JSON", json * 1e6, ""),
        ("the paper's DDS, 10,000 points", encode + decode, "by its Table 1"),
    ];
    for (name, micros, read) in costs {
        // A round is two heartbeats and two answers, encoded at one end and decoded at the other:
        // the leader encodes two and decodes two.
        let heartbeat = 2.0 * micros * 1e-3 / SHARE_OF_CORE;
        let timeout_heartbeats = heartbeat * f64::from(TIMEOUT_HEARTBEATS);
        table.push([name.into(), micros.into(), heartbeat.into(), timeout_heartbeats.into()]);
        let quantity = format!("soonest notice for a thousandth of a core, {name}");
        let row = Row::new(quantity, "ms", timeout_heartbeats);
        rows.push(match read {
            "" => row.clocked(),
            _ => row.by_construction("computed from the times that the paper prints").note(read),
        });
    }
    Ok(table)
}

/// Returns the minimum seconds to encode and decode a heartbeat: with Tautline's encoding, and in
/// JSON.
fn step_costs(run: &Run<'_>) -> Result<[f64; 2]> {
    let round_at = Some(Instant::from_millis(1234));
    let step = QuorumStep { kind: 6, from: 1, to: 2, term: 9, round_at, ..QuorumStep::default() };
    let told = JsonStep { kind: 6, from: 1, to: 2, term: 9, round_at: Some(1_234_000_000) };
    ensure!(
        told == serde_json::from_slice(&serde_json::to_vec(&told)?)?,
        "JSON tells another step"
    );
    let (clock, mut builder, mut best) = (Clock::start(), Builder::new(), [f64::MAX; 2]);
    for _ in 0..run.choose(20, 400) {
        let started = clock.now();
        for _ in 0..STEPS {
            let bytes = black_box(&step).encode_into(&mut builder);
            let _ = black_box(QuorumStep::decode(black_box(bytes)));
        }
        let between = clock.now();
        for _ in 0..STEPS {
            let bytes = serde_json::to_vec(black_box(&told))?;
            black_box(serde_json::from_slice::<JsonStep>(black_box(&bytes))?);
        }
        let took = [between.since(started), clock.now().since(between)];
        best = [0, 1].map(|at| best[at].min(took[at].as_secs_f64() / f64::from(STEPS)));
    }
    Ok(best)
}

/// Content of a heartbeat, for JSON.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct JsonStep {
    kind: u8,
    from: u8,
    to: u8,
    term: u64,
    round_at: Option<u64>,
}

fn name(fault: Fault) -> &'static str {
    match fault {
        Fault::Killed => "killed",
        Fault::Paused => "paused",
        Fault::CutOff => "cut off",
    }
}

fn notes() -> Vec<String> {
    vec![
        format!(
            "Processor: {}. Members run in virtual time with clocks that differ by up to 200 ppm; \
             chaos tests lose up to a fifth of the datagrams and kill, pause and cut off members at any \
             moment.",
            machine::processor()
        ),
        "A reign is a lease as its owner believes it, in true time, and goes on while its owner \
         stands still: that is more than anybody could act upon. A seed that fails is printed."
            .to_owned(),
        "The paper gives no numbers for this. JSON is serde_json's, of the same heartbeat, in the same run."
            .to_owned(),
    ]
}

const HEARTBEATS_MS: [u64; 6] = [2, 5, 10, 20, 50, 100];
const SHOWN_MS: u64 = 10;
const FAULTS_A_TEST: u32 = 8;
const STEPS: u32 = 100;
/// Share of one core for messages between the members.
const SHARE_OF_CORE: f64 = 0.001;
const COLUMNS: [&str; 5] =
    ["fault", "heartbeat_ms", "failover_ms_median", "failover_ms_worst", "unled_ms_median"];

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the first chaos test in which two act at once, as the checker formats it.
    fn first_clash(trust: &Trust) -> Option<String> {
        (0..60).find_map(|seed| match chaos_test(seed, 10, trust).unwrap() {
            Chaos::Reigns(_) => None,
            Chaos::Clash(told) => Some(told),
        })
    }

    #[test]
    fn a_sound_lease_lets_no_two_act() {
        assert_eq!(first_clash(&Trust::SOUND), None);
    }

    #[test]
    fn a_lease_longer_than_the_others_wait_is_caught_with_its_seed() {
        let told = first_clash(&Trust { timeout_heartbeats: [10, 5, 5], ..Trust::SOUND });
        let told = told.expect("one of the chaos tests shows two leaders");
        assert!(told.starts_with("SIM_SEED="), "{told}");
    }

    #[test]
    fn clock_drift_beyond_the_lease_margin_is_detected() {
        let told = first_clash(&Trust { drift_ppm: 400_000.0, ..Trust::SOUND });
        let told = told.expect("one of the chaos tests shows two leaders");
        assert!(told.starts_with("SIM_SEED="), "{told}");
    }
}

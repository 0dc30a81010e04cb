//! Beyond Figs. 16 and 17: cones hit over added latency, with and without the guard.
//!
//! The paper drives a car between cones, precisely, at its own latency, and prints no numbers. Here
//! the simulated car laps the test track under `tautline-guard`. The driver is the test track's
//! `Autopilot`, not a person. It sees the car as it was at the capture of the newest displayed
//! picture, and reacts without delay.

use anyhow::Result;
use tautline_guard::Config;
use tautline_guard::config::Latency;
use tautline_scenario::measure::quantile;
use tautline_units::Duration;

use self::drive::{COMMAND_DELAY, JITTER, LOST, Lap, Mean, PICTURE_DELAY, Setting};
use crate::experiment::{Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table};
use crate::plot::{Axis, Plot, Series};
use crate::workers;

mod drive;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lte-cones",
    title: "Cones hit against added latency, with and without the guard",
    source: "[LTE] Figs. 16 and 17",
    isolation: Isolation::Shared,
    mutation: Mutation::Named("loop-age"),
    run,
};

/// Drives the same laps with each delay, under each guard, with each foresight.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let laps = run.choose(2, 12);
    let first = run.seed.wrapping_mul(laps);
    let added: &[u64] = run.choose(&[0, 150, 250, 500], &ADDED_MS);
    let jobs: Vec<Setting> = cases(added)
        .flat_map(|case| (0..laps).map(move |lap| case.setting(first.wrapping_add(lap))))
        .collect();
    let driven = workers::each(
        workers::count(),
        &jobs,
        |setting| Ok(setting.drive()),
        |done, _| run.progress(done as u64, jobs.len() as u64, "laps"),
    )?;
    let driven: Vec<Driven> = cases(added)
        .zip(driven.chunks(laps as usize))
        .map(|(case, laps)| Driven { case, laps: laps.to_vec() })
        .collect();
    let all = All { driven, added };
    Ok(Outcome::Measured(Findings {
        rows: all.rows(),
        tables: vec![all.table()],
        plots: all.plots(),
        notes: notes(laps),
    }))
}

/// One driving configuration.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// Index into [`FORESIGHTS`].
    foresight: usize,
    /// Index into [`GUARDS`].
    guard: usize,
    /// Delay added to the round trip.
    added_ms: u64,
}

/// Several laps of a case, each on another course.
struct Driven {
    case: Case,
    laps: Vec<Lap>,
}

struct All<'a> {
    driven: Vec<Driven>,
    added: &'a [u64],
}

/// Extrapolation of a picture by the driver: a name, and the share of the mean delay by which the
/// driver extrapolates.
const FORESIGHTS: [(&str, f64); 3] = [("none", 0.0), ("half", 0.5), ("all", 1.0)];
/// Names of the guard's configurations, by [`GUARD`], [`BOUND_ALONE`] and [`NO_BOUND`].
const GUARDS: [&str; 3] = ["guard", "bound alone", "no bound"];
const GUARD: usize = 0;
const BOUND_ALONE: usize = 1;
const NO_BOUND: usize = 2;

fn cases(added: &[u64]) -> impl Iterator<Item = Case> {
    (0..FORESIGHTS.len()).flat_map(move |foresight| {
        (0..GUARDS.len()).flat_map(move |guard| {
            added.iter().map(move |added_ms| Case { foresight, guard, added_ms: *added_ms })
        })
    })
}

impl Case {
    fn setting(&self, seed: u64) -> Setting {
        Setting {
            config: config(self.guard),
            added: Duration::from_millis(self.added_ms),
            foresight: FORESIGHTS[self.foresight].1,
            seed,
        }
    }
}

/// Returns the settings of one of [`GUARDS`]: the defaults, or lenient ones in which nothing is too
/// late, with or without the bound of the speed by the loop age.
fn config(guard: usize) -> Config {
    let ms = Duration::from_millis;
    let lenient = Latency {
        loop_age_max: ms(2_000),
        picture_age_max: ms(1_000),
        command_age_max: ms(1_000),
        command_timeout: ms(1_000),
        ..Latency::default()
    };
    let latency = match guard {
        GUARD => Latency::default(),
        BOUND_ALONE => lenient,
        _ => Latency { loop_age_full: ms(1_000), ..lenient },
    };
    Config { latency, ..Config::car() }
}

impl Driven {
    fn x(&self) -> f64 {
        self.case.added_ms as f64
    }

    fn cones(&self, share: f64) -> f64 {
        let mut hit: Vec<f64> = self.laps.iter().map(|lap| f64::from(lap.cones_hit)).collect();
        quantile(&mut hit, share)
    }

    fn mean(&self, of: impl Fn(&Lap) -> f64) -> f64 {
        self.laps.iter().map(of).sum::<f64>() / self.laps.len() as f64
    }

    fn mean_cones(&self) -> f64 {
        self.mean(|lap| f64::from(lap.cones_hit))
    }

    fn whole(&self) -> f64 {
        self.mean(|lap| f64::from(u8::from(lap.is_whole)))
    }

    fn loop_age(&self) -> f64 {
        Mean::of(self.laps.iter().map(|lap| lap.loop_age))
    }

    /// Returns whether on average more cones were hit than in the same laps of `other`, by over two
    /// standard errors of the differences lap by lap.
    fn is_worse_than(&self, other: &Self) -> bool {
        let count = self.laps.len() as f64;
        let pairs = self.laps.iter().zip(&other.laps);
        let more: Vec<f64> = pairs
            .map(|(one, other)| f64::from(one.cones_hit) - f64::from(other.cones_hit))
            .collect();
        let mean = more.iter().sum::<f64>() / count;
        let squares: f64 = more.iter().map(|more| (more - mean) * (more - mean)).sum();
        mean > 2.0 * (squares / (count - 1.0) / count).sqrt()
    }
}

impl All<'_> {
    fn of(&self, foresight: usize, guard: usize) -> &[Driven] {
        let at = (foresight * GUARDS.len() + guard) * self.added.len();
        &self.driven[at..at + self.added.len()]
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows = self.delays();
        for (foresight, (name, _)) in FORESIGHTS.iter().enumerate() {
            rows.extend(self.compared(foresight, name));
        }
        rows
    }

    /// Returns rows about the network's delays, and about the loop age that the guard measured.
    fn delays(&self) -> Vec<Row> {
        let unbound = self.of(0, NO_BOUND);
        let (least, most) = (&unbound[0], &unbound[self.added.len() - 1]);
        let added = (most.case.added_ms - least.case.added_ms) as f64;
        let way = |of: fn(&Lap) -> Mean| Mean::of(least.laps.iter().map(of));
        vec![
            Row::new("event to picture, mean, nothing added", "ms", way(|lap| lap.picture_delay))
                .published(90.0)
                .by_construction("the paper's delays are the simulation's setting"),
            Row::new("round trip, mean, nothing added", "ms", 2.0 * way(|lap| lap.command_delay))
                .published(46.0)
                .by_construction("the paper's delays are the simulation's setting")
                .note("twice the way of a command"),
            Row::new("loop age, mean, nothing added", "ms", least.loop_age())
                .note("the worst over the last picture interval, as the guard counts it"),
            Row::new("loop age, mean, more by", "ms", most.loop_age() - least.loop_age())
                .reference(added)
                .within(0.02)
                .because("a step of the guard's clock, 10 ms, on either side"),
        ]
    }

    /// Returns rows about the effect of the guard, for a driver with one foresight.
    fn compared(&self, foresight: usize, name: &str) -> Vec<Row> {
        let [guard, bound, none] =
            [GUARD, BOUND_ALONE, NO_BOUND].map(|guard| self.of(foresight, guard));
        let first = [guard, bound, none].map(|of| of[0].mean_cones());
        let worse = guard.iter().zip(none).filter(|(with, without)| with.is_worse_than(without));
        // Laps that cannot be driven cost no cones, and are not informative.
        let is_driven: Vec<bool> = guard.iter().map(|driven| driven.whole() == 1.0).collect();
        let late = |of: &[Driven], is_counted: &dyn Fn(usize) -> bool| {
            let late = of.iter().enumerate();
            let late = late.filter(|(at, of)| of.case.added_ms >= LATE_MS && is_counted(*at));
            let cones: Vec<f64> = late.map(|(_, driven)| driven.mean_cones()).collect();
            cones.iter().sum::<f64>() / cones.len() as f64
        };
        let (driven, any) = (|at: usize| is_driven[at], |_: usize| true);
        let drivable = guard.iter().filter(|driven| driven.case.added_ms <= DRIVABLE_MS);
        let whole = drivable.map(Driven::whole).fold(f64::INFINITY, f64::min);
        let named = |what: String| format!("foresight {name}: {what}");
        vec![
            Row::new(named("cones a lap, nothing added, any guard".to_owned()), "", most(&first))
                .reference(0.0)
                .within_absolute(0.0)
                .because("a cone is hit or not")
                .note("the paper steers precisely between its cones at this latency"),
            Row::new(
                named(format!("whole laps with the guard, up to {DRIVABLE_MS} ms added, least")),
                "",
                whole,
            )
            .reference(1.0)
            .within_absolute(0.0)
            .because("every lap comes around"),
            Row::new(
                named("latencies at which the guard lets more cones be hit".to_owned()),
                "",
                worse.count() as f64,
            )
            .reference(0.0)
            .within_absolute(0.0)
            .because("two standard errors are in what is counted")
            .note("by over two standard errors of the differences lap by lap"),
            Row::new(
                named(format!(
                    "cones a lap with the guard, from {LATE_MS} ms added to its last lap"
                )),
                "",
                late(guard, &driven),
            )
            .reference(late(none, &driven))
            .at_most(0.5)
            .because("set by hand: half of the cones, or the bound is not worth its speed")
            .note("the reference: without a bound"),
            Row::new(
                named(format!("cones a lap with the bound alone, {LATE_MS} ms added and more")),
                "",
                late(bound, &any),
            )
            .reference(late(none, &any))
            .note("the bound without the stop at 500 ms"),
        ]
    }

    fn table(&self) -> Table {
        let columns = [
            "foresight",
            "guard",
            "added_ms",
            "loop_age_ms",
            "cones_p25",
            "cones_p50",
            "cones_p75",
            "cones_mean",
            "cones_standing",
            "whole_laps",
            "stops_a_lap",
            "speed_m_per_s",
            "off_road_s",
        ];
        let mut table = Table::new("cones", columns).shown("Cones hit in a lap");
        for driven in &self.driven {
            let Case { foresight, guard, added_ms } = driven.case;
            table.push([
                FORESIGHTS[foresight].0.into(),
                GUARDS[guard].into(),
                added_ms.into(),
                driven.loop_age().into(),
                driven.cones(0.25).into(),
                driven.cones(0.5).into(),
                driven.cones(0.75).into(),
                driven.mean_cones().into(),
                driven.mean(|lap| lap.cones as f64).into(),
                driven.whole().into(),
                driven.mean(|lap| f64::from(lap.stops)).into(),
                driven.mean(|lap| lap.metres / lap.seconds).into(),
                driven.mean(|lap| lap.seconds_off_road).into(),
            ]);
        }
        table
    }

    fn plots(&self) -> Vec<Plot> {
        let axis = || Axis::linear("added to the round trip, ms");
        let mut plots: Vec<Plot> = FORESIGHTS
            .iter()
            .enumerate()
            .map(|(foresight, (name, _))| {
                let title = format!("Cones hit in a lap; foresight: {name}");
                let y = Axis::linear("cones hit, median");
                let plot = Plot::new(&format!("cones-{name}"), &title, axis(), y);
                plot.with_all((0..GUARDS.len()).flat_map(|guard| self.quartiles(foresight, guard)))
            })
            .collect();
        let curves = |name: &str, title: &str, y: &str, of: fn(&Lap) -> f64| {
            let of_guard = |guard: usize| {
                let points = self.of(0, guard).iter().map(|driven| (driven.x(), driven.mean(of)));
                Series::marked(GUARDS[guard], points.collect())
            };
            Plot::new(name, title, axis(), Axis::linear(y))
                .with_all((0..GUARDS.len()).map(of_guard))
        };
        plots.push(curves("speed", "Speed; foresight: none", "m/s, mean", |lap| {
            lap.metres / lap.seconds
        }));
        plots.push(curves("off-road", "Beside the road; foresight: none", "s, mean", |lap| {
            lap.seconds_off_road
        }));
        plots
    }

    /// Returns the quartiles and the median of the cones hit in a lap under a guard, over the
    /// delays at which it permits complete laps.
    fn quartiles(&self, foresight: usize, guard: usize) -> [Series; 2] {
        let line = |share: f64| -> Vec<(f64, f64)> {
            let drivable = self.of(foresight, guard).iter().filter(|driven| driven.whole() == 1.0);
            drivable.map(|driven| (driven.x(), driven.cones(share))).collect()
        };
        // Forwards along one quartile, backwards along the other.
        let around = line(0.25).into_iter().chain(line(0.75).into_iter().rev()).collect();
        let quartiles = format!("{}, quartiles", GUARDS[guard]);
        [
            Series::line(quartiles, around).dashed().colour(guard),
            Series::marked(GUARDS[guard], line(0.5)).colour(guard),
        ]
    }
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn notes(laps: u64) -> Vec<String> {
    vec![
        format!(
            "The driver is a pure pursuit of the course's line at the line's speed, at most 15 m/s: \
             simulated, no person, without a reaction time and without fear. It sees the car's \
             state at the capture of the newest picture shown. Foresight: it carries that on by \
             the speed and the turn in the picture, for none, half or all of the delay, which \
             the page tells. {laps} laps of each, of as many courses."
        ),
        format!(
            "Nothing added is the paper's latency: {} ms from an event to its picture, {} ms for a \
             command, of which {} ms each on average are random, with an exponential \
             distribution; 60 pictures a second, of which {} % come too late to be shown. Added \
             latency is constant, half of it in each direction.",
            PICTURE_DELAY.as_millis(),
            COMMAND_DELAY.as_millis(),
            JITTER.as_millis(),
            LOST * 100.0
        ),
        "guard: the default settings, a speed bound from 200 ms of loop age on and a stop above 500 ms. \
         bound alone: nothing is too late, which no vehicle should have. no bound: that, and the \
         top speed at any loop age; the envelope of steering and speed holds in all three."
            .to_owned(),
        "Where the guard lets nobody drive a whole lap its curve ends. Off the road there are no \
         cones: a car that has lost the road hits fewer, and the last plot tells how long it had."
            .to_owned(),
    ]
}

/// Delays added in a full run, in ms.
const ADDED_MS: [u64; 11] = [0, 50, 100, 150, 200, 250, 300, 350, 400, 450, 500];
/// Least added delay, in ms, at which a driver without a bound of the speed hits cones; rows on the
/// guard's effect average the delays from it on.
const LATE_MS: u64 = 250;
/// Largest added delay, in ms, at which the default guard permits a whole lap without a stop; up to
/// it, a row requires that every lap with the guard is whole.
const DRIVABLE_MS: u64 = 250;

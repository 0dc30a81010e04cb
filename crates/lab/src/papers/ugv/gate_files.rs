//! Figs. 4 and 5 with processes, between two modems as in Fig. 3: latency files with video sent
//! regardless, and only on a path that answers.

use std::time::Duration;

use anyhow::Result;
use tautline_net::latency::{Leg, Spikes, Summary};

use super::gate::modem;
use super::stand::{Drive, Files, Program, RATE, SENT, TRANSPORT, Way};
use crate::experiment::{Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table};
use crate::pictures::coding::{quantile, sorted};
use crate::plot::{Axis, Plot, Series};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "ugv-files-gate",
    title: "The switchboard's files of latency, video sent regardless and only on a path that answers",
    source: "[UGV] Figs. 4 and 5",
    isolation: Isolation::Processes,
    mutation: Mutation::Named("silence"),
    run,
};

/// Performs drives with and without a gate over the same links in parallel, and reads their files.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let program = match Program::ready(run.seed)? {
        Ok(program) => program,
        Err(missing) => return Ok(missing),
    };
    let length = Duration::from_secs(run.choose(15, 60));
    let seeds = run.choose(1, 4);
    let drive = |seed: u64, is_gated: bool| {
        let gate = if is_gated { "" } else { NO_GATE };
        let settings = format!("{TRANSPORT}{gate}{RATE}");
        let link = modem();
        Drive {
            vehicle_link: link.clone(),
            operator_link: link,
            vehicle: settings.clone(),
            operator: settings,
            ping_ms: PING_MS,
            seed: run.seed.wrapping_mul(1000) + seed,
            number: (2 * seed) as usize + usize::from(is_gated),
        }
    };
    let jobs: Vec<Drive> =
        (0..seeds).flat_map(|seed| [drive(seed, false), drive(seed, true)]).collect();
    let made = match program.drives(run, &jobs, length, jobs.len())? {
        Ok(made) => made,
        Err(too_busy) => return Ok(too_busy),
    };
    let mut of = [Found::new("no gate"), Found::new("gate")];
    for (place, files) in made.into_iter().enumerate() {
        of[place % 2].drives.push(files);
    }
    Ok(Outcome::Measured(findings(run, length, &of)))
}

/// Latency files of the drives with or without the gate.
struct Found {
    name: &'static str,
    drives: Vec<Files>,
}

impl Found {
    fn new(name: &'static str) -> Self {
        Self { name, drives: Vec::new() }
    }

    fn all(&self) -> Files {
        let mut all = Files::default();
        self.drives.iter().cloned().for_each(|files| all.append(files));
        all
    }

    fn round_trips(&self, leg: Leg) -> Vec<Duration> {
        self.drives.iter().flat_map(|files| files.delays(leg, Way::RoundTrip)).collect()
    }

    /// Returns the mean round-trip time of the switchboard's pings to the vehicle, in ms.
    fn mean(&self) -> f64 {
        let pings = self.round_trips(PINGED);
        pings.iter().sum::<Duration>().as_secs_f64() * 1e3 / pings.len() as f64
    }

    fn median(&self, leg: Leg) -> f64 {
        quantile(&sorted(self.round_trips(leg).into_iter().map(ms)), 0.5)
    }

    fn longest(&self) -> f64 {
        self.round_trips(PINGED).into_iter().map(ms).fold(0.0, f64::max)
    }

    /// Returns the number of the switchboard's pings to the vehicle per spike of one second.
    fn pings_per_spike(&self) -> f64 {
        let spikes = |files: &Files| Spikes::of(files.delays(PINGED, Way::RoundTrip)).count;
        let spikes: usize = self.drives.iter().map(spikes).sum();
        self.round_trips(PINGED).len() as f64 / spikes as f64
    }

    /// Returns the share of the switchboard's pings to the vehicle whose round trip took at least
    /// `least_ms`.
    fn share_from(&self, least_ms: f64) -> f64 {
        let pings = self.round_trips(PINGED);
        let long = pings.iter().filter(|ping| ms(**ping) >= least_ms).count();
        long as f64 / pings.len() as f64
    }
}

fn findings(run: &Run<'_>, length: Duration, found: &[Found; 2]) -> Findings {
    let [off, gate] = found;
    let mut rows = vec![
        Row::new("no gate: mean of the switchboard's pings to the vehicle", "ms", off.mean())
            .published(409.0)
            .note(ROUND_TRIPS),
        Row::new("gate: mean of the switchboard's pings to the vehicle", "ms", gate.mean())
            .published(185.0)
            .note(ROUND_TRIPS),
        Row::new("mean with the gate over mean without", "", gate.mean() / off.mean())
            .published(185.0 / 409.0)
            .at_most(run.choose(2.0, 1.9))
            .because(
                "set by hand: how full the paper's link was it does not say, and a ping meets the queue of one link of two",
            )
            .clocked(),
    ];
    let severity = |least: f64, what: &str| {
        let ratio = gate.share_from(least) / off.share_from(least);
        let row = Row::new(
            format!("share of pings of {what} and more, with the gate over without"),
            "",
            ratio,
        );
        match run.quick {
            true => row.note("Not judged: a quick run has few of them, or none."),
            false => row
                .asked(1.0)
                .at_most(1.0)
                .because("the claim's own edge: the gate makes spikes rarer and less severe")
                .clocked(),
        }
    };
    rows.push(severity(1_000.0, "a second"));
    rows.push(severity(400.0, "400 ms"));
    for (found, spike, longest) in [(off, 40.0, 5700.0), (gate, 67.0, 1900.0)] {
        let name = |what: &str| format!("{}: {what}", found.name);
        rows.push(
            Row::new(name("pings for each spike of a second"), "", found.pings_per_spike())
                .published(spike)
                .note("The paper's with the gate begin at 400 ms."),
        );
        rows.push(Row::new(name("longest ping"), "ms", found.longest()).published(longest));
        rows.push(Row::new(name("H.264 shown"), "kbit/s", found.all().video_kbps()));
        rows.extend(relayed_rows(run, found));
        rows.extend(found.all().machine_rows().map(|mut row| {
            row.quantity = name(&row.quantity);
            row
        }));
    }
    let series = found.iter().map(|found| {
        let pings = found.drives[0].sent(PINGED, Way::RoundTrip);
        let first = pings.first().map_or(Duration::ZERO, |(sent_at, _)| *sent_at);
        let point = |(sent_at, delay): &(Duration, Duration)| {
            ((*sent_at - first).as_secs_f64(), ms(*delay))
        };
        Series::line(found.name, pings.iter().map(point).collect())
    });
    let y = Axis::linear("round trip of a ping, ms");
    let title = "The switchboard's pings to the vehicle, first drive of each";
    Findings {
        tables: vec![table(found)],
        plots: vec![Plot::new("pings", title, Axis::linear("s"), y).with_all(series)],
        rows,
        notes: vec![
            format!(
                "Switchboard, relay, vehicle and operator as processes; both ends behind the modelled modem of \
                 `ugv-fig-4`, emulated in real time between network namespaces, so that TCP to the switchboard and UDP to \
                 the relay share it. No way leads from one end to the other but by the relay. {} drives of {} s each \
                 way, all at a time, over the same outages.",
                off.drives.len(),
                length.as_secs()
            ),
            format!(
                "All figures are round trips in the files of latency: the switchboard's pings every {PING_MS} ms over \
                 its control connections, the relay's probes every second, the session's pings from the operator. {SENT} Its gate \
                 closes after the product's own time, or, without a gate, after 10 s."
            ),
            "Outages hold both directions at once, and a ping that is held on its way out finds the way back open: \
             its parts say where it was held, not where it could have been."
                .to_owned(),
        ],
    }
}

/// Returns rows that compare the relay's and the operator's files with the switchboard's.
fn relayed_rows(run: &Run<'_>, found: &Found) -> Vec<Row> {
    let near = run.choose(0.5, 0.25);
    let legs = [
        ("vehicle", Leg::RelayVehicle, Leg::SwitchboardVehicle),
        ("operator", Leg::RelayOperator, Leg::SwitchboardOperator),
    ];
    let mut rows: Vec<Row> = legs
        .into_iter()
        .map(|(end, relay, switchboard)| {
            let name = format!(
                "{}, {end}: median of the relay's probes, over the switchboard's pings",
                found.name
            );
            Row::new(name, "", found.median(relay) / found.median(switchboard))
                .reference(1.0)
                .within(near)
                .because("set by hand: both share the link, and few probes are asked each second")
                .clocked()
        })
        .collect();
    let both = found.median(Leg::RelayVehicle) + found.median(Leg::RelayOperator);
    let name =
        format!("{}: median from end to end, over the sum of the relay's two legs", found.name);
    rows.push(
        Row::new(name, "", found.median(Leg::OperatorVehicle) / both)
            .reference(1.0)
            .within(near)
            .because("set by hand: through the relay it is both legs, and pings ask their queues at other times")
            .clocked(),
    );
    rows
}

fn table(found: &[Found; 2]) -> Table {
    let columns =
        ["way", "leg", "count", "p50_ms", "p95_ms", "p99_ms", "worst_ms", "from_1000_ms", "spikes"];
    let mut table = Table::new("legs", columns);
    for found in found {
        for leg in Leg::ALL {
            let trips = || found.drives.iter().map(|files| files.delays(leg, Way::RoundTrip));
            let spikes = trips().map(Spikes::of).fold(Spikes::default(), |sum, one| Spikes {
                count: sum.count + one.count,
                samples: sum.samples + one.samples,
            });
            let Some(summary) = Summary::of(&mut trips().flatten().collect::<Vec<_>>()) else {
                continue;
            };
            let Summary { count, p50, p95, p99, max, .. } = summary;
            let [p50, p95, p99, max] = [p50, p95, p99, max].map(|delay| ms(delay).into());
            let (way, leg) = (found.name.into(), leg.name().into());
            let (long, spikes) = (spikes.samples.into(), spikes.count.into());
            table.push([way, leg, count.into(), p50, p95, p99, max, long, spikes]);
        }
    }
    table
}

fn ms(delay: Duration) -> f64 {
    delay.as_secs_f64() * 1e3
}

const ROUND_TRIPS: &str = "Not judged: a round trip over one of the two links, whose numbers were fitted to messages over both in \
                           `ugv-fig-4`; the paper does not say which of the two its means are.";
const PINGED: Leg = Leg::SwitchboardVehicle;
/// Setting that keeps the gate open: a link timeout longer than any outage.
const NO_GATE: &str = "link_timeout_ms = 10000\n";
/// Ping interval of the switchboard in ms, which thus compares clocks over five seconds.
const PING_MS: u64 = 500;

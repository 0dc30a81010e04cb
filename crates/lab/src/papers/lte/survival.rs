//! Codes that survive the loss of a link: a rule that III.C leaves out.
//!
//! A block survives the loss of any one link if and only if N minus the packets on the busiest link
//! is at least K. The paper's 4 of 7 over two modems does not satisfy this.

use anyhow::{Result, ensure};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use tautline_scenario::policies::planner::{self, FixedRate, Schedule};
use tautline_transport::Config;
use tautline_transport::planner::{Link, Planner, Unit};
use tautline_transport::wire::Prefix;
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use super::block::Block;
use crate::experiment::{Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table};
use crate::plot::{Axis, Plot, Series};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lte-survival",
    title: "Which codes outlive the loss of a link",
    source: "[LTE] III.C",
    isolation: Isolation::Shared,
    mutation: Mutation::Named("planner"),
    run,
};

/// Spreads blocks of 4 of n over equal links, removes each link in turn, and decodes.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let mut random = ChaCha8Rng::seed_from_u64(run.seed);
    let mut cases = Vec::new();
    for links in 1..=4 {
        for packet_count in K..=N_MOST {
            for spread in [false, true] {
                cases.push(Case::measure(links, packet_count, spread, &mut random)?);
            }
        }
    }
    Ok(Outcome::Measured(Findings {
        rows: rows(&cases)?,
        tables: vec![table(&cases)],
        plots: vec![plot(&cases)],
        notes: vec![
            "Blocks are cut, coded and spread by the transport's planner with the paper's rule, the earliest \
             anticipated transmission end, over links of equal rate, and decoded from what the links that are left carry. \
             Spread: as Tautline's sessions do, no link takes more than n - k packets while \
             another can."
                .to_owned(),
            format!(
                "Links that deliver a slice's whole share in time or nothing of it, link i with \
                 probability {DELIVERS:?}: the reference's model of links that fail as wholes. \
                 Taking packets to fail independently would overstate how safe a block is."
            ),
        ],
    }))
}

const K: usize = 4;
const N_MOST: usize = 9;
/// Size, in bytes, of the packets into which the planner cuts the unit that it assigns to links;
/// the unit fills K of them.
const UNIT_PACKET_BYTES: usize = 694;

/// A block code with `source_count` (K) source packets of `packet_count` (N).
#[derive(Clone, Copy)]
struct Code {
    source_count: usize,
    packet_count: usize,
}
const PACKET_BYTES: usize = 64;
/// Probabilities that a link delivers its share in time, from the reference model of links that
/// fail as wholes.
const DELIVERS: [f64; 4] = [0.98, 0.97, 0.98, 0.97];

/// One block's shares, and its outcome without each of its links.
struct Case {
    links: usize,
    packet_count: usize,
    spread: bool,
    /// Number of packets on each link.
    shares: Vec<usize>,
    /// For each link, true if the block decodes without it.
    survives: Vec<bool>,
}

impl Case {
    fn measure(
        links: usize,
        packet_count: usize,
        spread: bool,
        random: &mut ChaCha8Rng,
    ) -> Result<Self> {
        let assignment = assign(links, Code { source_count: K, packet_count }, spread)?;
        let mut block = Block::new(K, packet_count, PACKET_BYTES, random)?;
        let mut survives = Vec::new();
        for lost in 0..links {
            let delay = |link: &usize| if *link == lost { f64::INFINITY } else { 0.0 };
            let delays: Vec<f64> = assignment.iter().map(delay).collect();
            survives.push(block.complete_after(&delays)?.is_some());
        }
        Ok(Self { links, packet_count, spread, shares: shares(links, &assignment), survives })
    }

    fn survives_any(&self) -> bool {
        self.survives.iter().all(|survives| *survives)
    }

    fn rule(&self) -> bool {
        let busiest = self.shares.iter().max().copied().unwrap_or(0);
        self.packet_count - busiest >= K
    }
}

/// Returns the number of packets on each of `links` links; `assignment` has the link of each
/// packet.
fn shares(links: usize, assignment: &[usize]) -> Vec<usize> {
    (0..links).map(|link| assignment.iter().filter(|at| **at == link).count()).collect()
}

/// Returns each packet's link, as assigned by the transport's planner to a unit of full packets.
fn assign(links: usize, code: Code, spread: bool) -> Result<Vec<usize>> {
    let config = Config { spread, ..Config::default() }.planning();
    let of_planner = planner::Code {
        source_count_min: code.source_count,
        ..planner::Code::of_rate(code.source_count as f64 / code.packet_count as f64)
    };
    let mut planner = FixedRate::new(&config, of_planner, Schedule::TransmissionEnd);
    let link = Link::new(Bitrate::from_mbps(8), Duration::from_millis(20));
    let bytes = ByteCount::new((UNIT_PACKET_BYTES * code.source_count - Prefix::BYTES) as u64);
    let unit = Unit { bytes, deadline: Instant::from_millis(200) };
    let plan = planner.plan(&unit, &vec![link; links], Instant::ZERO)?;
    ensure!(plan.packets.source_count == code.source_count, "cut otherwise: {plan:?}");
    ensure!(plan.assignment.len() == code.packet_count, "coded otherwise: {plan:?}");
    Ok(plan.assignment.iter().copied().flatten().collect())
}

/// Returns the probability that `needed` packets arrive, if each link delivers its share completely
/// or not at all.
fn completes(shares: &[usize], needed: usize) -> f64 {
    let subsets = 0..1_u32 << shares.len();
    let of = |subset: u32| {
        let (mut probability, mut packets) = (1.0, 0);
        for (link, share) in shares.iter().enumerate() {
            if subset >> link & 1 == 1 {
                probability *= DELIVERS[link];
                packets += share;
            } else {
                probability *= 1.0 - DELIVERS[link];
            }
        }
        if packets >= needed { probability } else { 0.0 }
    };
    subsets.map(of).sum()
}

fn rows(cases: &[Case]) -> Result<Vec<Row>> {
    let against = cases.iter().filter(|case| case.rule() != case.survives_any()).count();
    let mut rows = vec![
        Row::new("cases that decode against the rule", "", against as f64)
            .reference(0.0)
            .within_absolute(0.0)
            .because("a block decodes or does not"),
    ];
    for (packet_count, survives) in [(7, 0.0), (8, 1.0)] {
        let case = cases
            .iter()
            .find(|case| case.links == 2 && case.packet_count == packet_count && !case.spread);
        let measured = case.map_or(f64::NAN, |case| f64::from(u8::from(case.survives_any())));
        rows.push(
            Row::new(
                format!("4 of {packet_count} on two links survives the loss of any"),
                "",
                measured,
            )
            .reference(survives)
            .within_absolute(0.0)
            .because("it does or does not")
            .note("1 is yes. The paper codes 4 of 7."),
        );
    }
    for (links, source_count, packet_count, probability) in KNOWN {
        let shares = shares(links, &assign(links, Code { source_count, packet_count }, false)?);
        rows.push(
            Row::new(
                format!("{source_count} of {packet_count} on {links} links: complete"),
                "",
                completes(&shares, source_count),
            )
            .reference(probability)
            .within_absolute(1e-8)
            .because("a sum over the links that fail, of the shares that the planner gives")
            .note(format!("Shares {shares:?}.")),
        );
    }
    Ok(rows)
}

/// Links, K, N, and the reference probability that a block is complete over links that fail
/// according to [`DELIVERS`].
const KNOWN: [(usize, usize, usize, f64); 5] = [
    (2, 4, 7, 0.98),
    (2, 4, 8, 0.9994),
    (3, 4, 7, 0.998_424),
    (4, 4, 8, 0.999_941_08),
    (4, 9, 12, 0.996_418_92),
];

fn table(cases: &[Case]) -> Table {
    let columns =
        ["links", "n", "spread", "shares", "survives_any", "links_that_can_go", "completes"];
    let mut table = Table::new("survival", columns);
    for case in cases {
        let shares: Vec<String> = case.shares.iter().map(usize::to_string).collect();
        table.push([
            case.links.into(),
            case.packet_count.into(),
            if case.spread { "yes" } else { "no" }.into(),
            shares.join(" ").into(),
            if case.survives_any() { "yes" } else { "no" }.into(),
            case.survives.iter().filter(|survives| **survives).count().into(),
            completes(&case.shares, K).into(),
        ]);
    }
    table
}

fn plot(cases: &[Case]) -> Plot {
    let series = (1..=4).map(|links| {
        let of = cases.iter().filter(|case| case.links == links && !case.spread);
        let points = of.map(|case| (case.packet_count as f64, 1.0 - completes(&case.shares, K)));
        Series::marked(format!("{links} links"), points.collect())
    });
    let x = Axis::linear("n, with k = 4");
    let y = Axis::log("probability that a block is not complete");
    Plot::new("survival", "Blocks over links that fail as wholes", x, y).with_all(series)
}

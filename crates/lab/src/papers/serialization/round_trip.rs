//! Fig. 1: the paper's ranking, today's, and the reasons for the difference.

use anyhow::{Context, Result, ensure};

use super::codecs::{Codecs, Published, note, published};
use crate::experiment::{Experiment, Findings, Isolation, Outcome, Row, Run, Table};
use crate::notation::number;
use crate::plot::{Axis, Plot, Series};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "timing-fig-1",
    title: "Round trips of 10,000 lidar points, and why the ranking is another today",
    source: "[TIMING] Fig. 1",
    isolation: Isolation::Shared,
    mutation: super::codecs::SPARED,
    run,
};

/// One codec's round trip to the normalized form and back, then and now.
struct Trip {
    line: Published,
    /// Microseconds in the paper: its bars are the sums of Table 1's encode and decode.
    then: f64,
    /// Microseconds in the committed measurement.
    now: f64,
}

/// Compares the committed times to encode and decode 10,000 points with the paper's for each codec,
/// the paper's fastest first.
fn run(_: &Run<'_>) -> Result<Outcome> {
    let codecs = Codecs::read()?;
    let (mut trips, mut missing) = (Vec::new(), Vec::new());
    for line in published()? {
        let [encode, decode] =
            ["encode", "decode"].map(|metric| codecs.micros("table", line.here, "hot", metric));
        // The measuring machine may have lacked the codec's tools.
        let Some(now) = encode.zip(decode) else {
            missing.push(line.here);
            continue;
        };
        trips.push(Trip { then: line.micros[0] + line.micros[1], now: now.0 + now.1, line });
    }
    trips.sort_by(|one, other| one.then.total_cmp(&other.then));
    let mut order: Vec<usize> = (0..trips.len()).collect();
    order.sort_by(|one, other| trips[*one].now.total_cmp(&trips[*other].now));
    let columns =
        ["codec", "here", "paper_us", "paper_place", "now_us", "now_place", "times_faster", "why"];
    let (mut table, mut rows) = (Table::new("fig-1", columns), Vec::new());
    for (index, trip) in trips.iter().enumerate() {
        let Trip { line, then, now } = trip;
        let (place, was) = (place(&order, index)?, index as u64 + 1);
        let faster = number(then / now);
        table.push([
            line.paper.into(),
            line.here.into(),
            (*then).into(),
            was.into(),
            (*now).into(),
            place.into(),
            (then / now).into(),
            line.why.into(),
        ]);
        rows.push(
            Row::new(format!("round trip, {}", line.here), "µs", *now).published(*then).note(
                format!("place {was} then, {place} now, {faster} times faster. {}", line.why),
            ),
        );
    }
    if missing.is_empty() {
        rows.extend(claims(&trips)?);
    }
    let mut notes = vec![
        note(),
        "The paper prints no numbers next to the bars of Fig. 1: they are the sums of Table 1. It \
         leaves out JSON and packed Cap'n Proto, which stand here with the others."
            .to_owned(),
        "Unchanged code in C (LCM, Colfer) is about three times faster, because of the processor. \
         Larger gains are the compiler's: the releases of 2018 of Cap'n Proto, bincode and prost, \
         built by today's, are about as fast as today's releases."
            .to_owned(),
    ];
    if !missing.is_empty() {
        notes.push(format!("Not measured, and so without a place: {}.", missing.join(", ")));
    }
    Ok(Outcome::committed(
        codecs.measurement,
        Findings { tables: vec![table], plots: vec![plot(&trips)], rows, notes },
    ))
}

fn place(order: &[usize], index: usize) -> Result<u64> {
    let place = order.iter().position(|at| *at == index).context("every codec has a place")?;
    Ok(place as u64 + 1)
}

/// Returns rows with the figures behind the paper's statements about Fig. 1, then and now; none is
/// judged.
fn claims(trips: &[Trip]) -> Result<Vec<Row>> {
    let of = |paper: &str| {
        let trip = trips.iter().find(|trip| trip.line.paper == paper);
        trip.map(|trip| (trip.then, trip.now)).with_context(|| format!("{paper} is missing"))
    };
    let least = |names: &[&str]| -> Result<(f64, f64)> {
        let mut least = (f64::INFINITY, f64::INFINITY);
        for name in names {
            let (then, now) = of(name)?;
            least = (least.0.min(then), least.1.min(now));
        }
        ensure!(least.0.is_finite(), "no codec is named");
        Ok(least)
    };
    let slow = least(&["ProstProtobuf", "QuickProtobuf", "Commercial DDS", "CapnprotoStandard"])?;
    let (lcm, middle) = (of("Lcm")?, least(&["Bincode", "Colfer"])?);
    let (bincode, colfer) = (of("Bincode")?, of("Colfer")?);
    let slower = (bincode.0.max(colfer.0), bincode.1.max(colfer.1));
    let fast = ["Lcm", "FlatBuffers", "FastCdr"].map(of);
    let mut top = (0.0f64, 0.0f64);
    for one in fast {
        let (then, now) = one?;
        top = (top.0.max(then), top.1.max(now));
    }
    Ok(vec![
        Row::new(
            "least of Protocol Buffers, DDS, Cap'n Proto less LCM, FlatBuffers, Fast-CDR",
            "µs",
            slow.1 - top.1,
        )
        .published(slow.0 - top.0)
        .note("the paper: over 700; Cap'n Proto has left that group"),
        Row::new("least of bincode and Colfer against LCM", "times", middle.1 / lcm.1)
            .published(middle.0 / lcm.0)
            .note("the paper: over 2; bincode has overtaken LCM"),
        Row::new(
            "least of Protocol Buffers, DDS, Cap'n Proto against the slower of bincode and Colfer",
            "times",
            slow.1 / slower.1,
        )
        .published(slow.0 / slower.0)
        .note("the paper: twice as fast"),
    ])
}

/// Returns the figure's bars as marks, from left to right in the paper's order.
fn plot(trips: &[Trip]) -> Plot {
    let at = |of: fn(&Trip) -> f64| (1..).map(f64::from).zip(trips.iter().map(of)).collect();
    let names: Vec<&str> = trips.iter().map(|trip| trip.line.paper).collect();
    let x = Axis::linear(&names.join(", ")).range(0.0, names.len() as f64 + 1.0);
    Plot::new("fig-1", "Round trip to normalized form, 10,000 points", x, Axis::log("µs"))
        .with(Series::marked("published", at(|trip| trip.then)).published())
        .with(Series::marked("here", at(|trip| trip.now)))
}

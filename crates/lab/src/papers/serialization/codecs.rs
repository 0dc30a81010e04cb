//! The last results of `make bench-messages`: the lab itself links none of those codecs.

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::experiment::{Measurement, Mutation};

/// All committed figures of the codecs' own program, and the origin of the measurement.
pub(super) struct Codecs {
    figures: Vec<Figure>,
    pub(super) measurement: Measurement,
}

#[derive(Deserialize)]
struct Figure {
    part: String,
    codec: String,
    case: String,
    metric: String,
    value: f64,
}

/// The paper's metrics, in its order.
pub(super) const METRICS: [&str; 5] = ["encode", "decode", "sum", "guid", "y"];

/// A line of the paper's Table 1, with the corresponding codec here, and the reason for its rank.
pub(super) struct Published {
    pub(super) paper: &'static str,
    pub(super) here: &'static str,
    /// Microseconds by [`METRICS`].
    pub(super) micros: [f64; 5],
    pub(super) why: &'static str,
}

/// Returns all eleven lines of the paper's Table 1, in its order.
pub(super) fn published() -> Result<Vec<Published>> {
    let lines = PUBLISHED.lines().skip(1).map(line).collect::<Option<_>>();
    lines.context("published.csv has a line that is none of Table 1")
}

fn line(text: &'static str) -> Option<Published> {
    let mut fields = text.splitn(8, ';');
    let (paper, here) = (fields.next()?, fields.next()?);
    let mut micros = [0.0; 5];
    for number in &mut micros {
        *number = fields.next()?.parse().ok()?;
    }
    Some(Published { paper, here, micros, why: fields.next()? })
}

impl Codecs {
    pub(super) fn read() -> Result<Self> {
        let (measurement, figures) =
            Measurement::read(FILE, "make bench-messages", MADE, MEASURED)?;
        Ok(Self { figures, measurement })
    }

    /// Returns the time of a codec in a metric, in microseconds; `None` if it was not measured.
    pub(super) fn micros(&self, part: &str, codec: &str, case: &str, metric: &str) -> Option<f64> {
        let is = |figure: &&Figure| {
            figure.part == part
                && figure.codec == codec
                && figure.case == case
                && figure.metric == metric
        };
        self.figures.iter().find(is).map(|figure| figure.value * 1e6)
    }

    /// Returns the codecs of a part, in the order of the program.
    pub(super) fn names(&self, part: &str) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for figure in self.figures.iter().filter(|figure| figure.part == part) {
            if !names.contains(&figure.codec.as_str()) {
                names.push(&figure.codec);
            }
        }
        names
    }

    /// Returns how many mutated messages a codec neither read nor refused; `None` if the codec was
    /// not tested so.
    pub(super) fn harmed(&self, codec: &str) -> Option<f64> {
        let of = |figure: &&Figure| figure.part == "hostile" && figure.codec == codec;
        let mut figures = self.figures.iter().filter(of).peekable();
        figures.peek()?;
        let good = |figure: &&Figure| figure.metric != "read" && figure.metric != "refused";
        Some(figures.filter(good).map(|figure| figure.value).sum())
    }
}

/// Returns a note for the reader of these figures.
pub(super) fn note() -> String {
    "The least of many turns, codecs in turns, data in the second-level cache. The paper's machine is \
     an i5-6200U of 2015; what can be compared is the order and the ratio to memcpy."
        .to_owned()
}

/// The reason why no mutation turns a row of the experiments red that only show these figures.
pub(super) const SPARED: Mutation = Mutation::Spared(
    "It shows the results of `make bench-messages` and judges nothing; `timing-here` judges our part.",
);
const PUBLISHED: &str = include_str!("published.csv");
const MEASURED: &str = include_str!("codecs.csv");
const MADE: &str = include_str!("codecs.machine.json");
/// Path of the committed table, shown to the reader of the report.
const FILE: &str = "crates/lab/src/papers/serialization/codecs.csv";

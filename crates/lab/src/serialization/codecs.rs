//! What `make bench-messages` measured last: the lab itself links none of those codecs.

use anyhow::{Context, Result};

/// Every figure of the codecs' own program, as it was committed with its processor's name.
pub(super) struct Codecs {
    figures: Vec<Figure>,
}

struct Figure {
    part: String,
    codec: String,
    case: String,
    metric: String,
    value: f64,
}

/// The paper's metrics, in its order.
pub(super) const METRICS: [&str; 5] = ["encode", "decode", "sum", "guid", "y"];

/// The paper's Table 1 in microseconds, and the codec that stands for each here.
pub(super) const PUBLISHED: [(&str, Option<&str>, [f64; 5]); 11] = [
    ("Bincode", Some("bincode 1.3.3"), [263.2, 344.7, 350.8, 336.2, 336.3]),
    ("CapnprotoPacked", Some("capnp packed"), [786.2, 1552.5, 1440.8, 427.1, 427.6]),
    ("CapnprotoStandard", Some("capnp"), [346.9, 1197.5, 1063.9, 55.0, 45.3]),
    ("Colfer", None, [288.5, 124.6, 140.1, 82.4, 82.1]),
    ("FastCdr", None, [135.7, 155.9, 160.3, 101.6, 101.4]),
    ("FlatBuffers", Some("FlatBuffers, structs"), [155.6, 75.7, 59.3, 0.1, 0.0]),
    ("Json", Some("serde_json"), [3495.1, 11452.8, 11469.5, 11446.2, 11472.9]),
    ("Lcm", Some("LCM's wire"), [113.5, 89.5, 106.7, 48.8, 48.7]),
    ("ProstProtobuf", Some("prost"), [407.6, 975.4, 929.0, 914.3, 914.4]),
    ("QuickProtobuf", Some("quick-protobuf"), [914.4, 469.6, 392.1, 376.5, 378.0]),
    ("Commercial DDS", None, [1107.8, 1129.5, 863.3, 808.6, 778.9]),
];

impl Codecs {
    pub(super) fn read() -> Result<Self> {
        let figures = MEASURED.lines().skip(1).map(figure).collect::<Option<_>>();
        Ok(Self { figures: figures.context("codecs.csv has a line that is no figure")? })
    }

    /// Microseconds of a codec in a metric.
    pub(super) fn micros(&self, part: &str, codec: &str, case: &str, metric: &str) -> Option<f64> {
        let is = |figure: &&Figure| {
            figure.part == part
                && figure.codec == codec
                && figure.case == case
                && figure.metric == metric
        };
        self.figures.iter().find(is).map(|figure| figure.value * 1e6)
    }

    /// Every codec of a part, in the order of the program.
    pub(super) fn names(&self, part: &str) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for figure in self.figures.iter().filter(|figure| figure.part == part) {
            if !names.contains(&figure.codec.as_str()) {
                names.push(&figure.codec);
            }
        }
        names
    }

    /// How many mutated messages ended a codec otherwise than by a message or a refusal.
    pub(super) fn harmed(&self, codec: &str) -> Option<f64> {
        let of = |figure: &&Figure| figure.part == "hostile" && figure.codec == codec;
        let mut figures = self.figures.iter().filter(of).peekable();
        figures.peek()?;
        let good = |figure: &&Figure| figure.metric != "read" && figure.metric != "refused";
        Some(figures.filter(good).map(|figure| figure.value).sum())
    }
}

fn figure(line: &str) -> Option<Figure> {
    let (part, rest) = line.split_once(",\"")?;
    let (codec, rest) = rest.split_once("\",")?;
    let mut fields = rest.split(',');
    let (case, metric, value) = (fields.next()?, fields.next()?, fields.next()?);
    let [part, codec, case, metric] = [part, codec, case, metric].map(str::to_owned);
    Some(Figure { part, codec, case, metric, value: value.parse().ok()? })
}

/// What a reader must know of these figures.
pub(super) fn note() -> String {
    format!(
        "Measured by `make bench-messages` on {PROCESSOR}: the least of many turns, codecs in \
         turns, data in the second-level cache. The paper's machine is an i5-6200U of 2015; what \
         is compared is the order and the ratio to memcpy."
    )
}

const MEASURED: &str = include_str!("codecs.csv");
const PROCESSOR: &str = include_str!("codecs.processor.txt");

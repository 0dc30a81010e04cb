//! `tautline lab theory`: reference values of the streaming code.

use clap::Args;
use tautline_lab::notation::number;
use tautline_lab::theory::{Quantity, Question, quantities, to_json};

use super::table::print;

/// Print the theoretical values of the streaming code: busy time, delay and throughput for a pair
/// (l, e)
///
/// One repair packet follows every l - 1 source packets, on a link that loses each packet
/// independently with probability e. The load l e must be below 1; above it, the repair packets
/// never catch up with the losses. Times are in slots, each the time of one packet on the link, and
/// in intervals of l slots. At 25 Mbit/s and 1500 bytes per packet, a slot is 0.48 ms. S is the
/// busy time in intervals, and S+ the larger of S and 1. The delay is from the slot of a source
/// packet to the slot after which it and all earlier ones are known. Where the paper's formula is
/// wrong, its value is printed next to the right one.
#[derive(Debug, Args)]
pub(crate) struct Theory {
    /// l: slots from one repair packet to the next, including the latter
    #[arg(long = "l", value_name = "SLOTS", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    interval: u32,
    /// e: share of packets that the link loses, from 0 to below 1 / l
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    loss: f64,
    /// Target throughput as a share of the code rate (l - 1) / l, above 0 and below 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.99, allow_negative_numbers = true)]
    share: f64,
    /// Probability that a stream of the printed length stays below that throughput, above 0 and
    /// below 1
    #[arg(long, value_name = "PROBABILITY", default_value_t = 0.01, allow_negative_numbers = true)]
    failure: f64,
    /// Print one JSON object with all digits; the names contain the units
    #[arg(long)]
    json: bool,
}

impl Theory {
    /// Computes the values and prints them as a table or as JSON.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let Self { interval, loss: erasure_rate, share, failure, json } = self;
        let question = Question { interval, erasure_rate, share, failure };
        let found = quantities(&question)?;
        if json {
            tell!("{:#}", to_json(&question, &found));
            return Ok(());
        }
        let heads = ["quantity", "unit", "value", "as printed", "[STREAM]"];
        print(&heads, found.iter().map(cells).collect(), &[2, 3])
    }
}

fn cells(quantity: &Quantity) -> [String; 5] {
    [
        quantity.name.to_owned(),
        quantity.unit.to_owned(),
        quantity.value.map_or_else(|| "too far".to_owned(), number),
        quantity.printed.map_or_else(String::new, number),
        quantity.place.to_owned(),
    ]
}

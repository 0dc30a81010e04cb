//! `tautline lab theory`: reference values of the streaming code.

use clap::Args;
use tautline_lab::notation::number;
use tautline_lab::theory::{Quantity, Question, quantities, to_json};

use super::table::print;

/// Tell what theory says of the streaming code: busy time, delay and throughput for a pair (l, e)
///
/// One repair packet follows every l - 1 source packets, on a link that loses a share e of all packets, each
/// on its own. The load l e must be below 1: beyond, the repair packets never catch up with the losses.
/// Times are in slots, each the time of one packet on the link, and in intervals of l slots; at 25 Mbit/s
/// and 1500 bytes a packet a slot is 0.48 ms. S is the busy time in intervals, S+ the larger of S and 1, and
/// the delay is from the slot that carries a source packet to the one after which it and all before it are
/// known. Where the paper's formula errs, what it prints stands beside the right value.
#[derive(Debug, Args)]
pub(crate) struct Theory {
    /// l: slots from one repair packet to the next, itself included
    #[arg(long = "l", value_name = "SLOTS", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    interval: u32,
    /// e: share of the packets that the link loses, from 0 to below 1 / l
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    loss: f64,
    /// Throughput to be reached, as a share of the code rate (l - 1) / l, above 0 and below 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.99, allow_negative_numbers = true)]
    share: f64,
    /// Probability that a stream of the length told stays below that throughput, above 0 and below 1
    #[arg(long, value_name = "PROBABILITY", default_value_t = 0.01, allow_negative_numbers = true)]
    failure: f64,
    /// Print one JSON object with every digit; units are in the names
    #[arg(long)]
    json: bool,
}

impl Theory {
    /// Prints the values.
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

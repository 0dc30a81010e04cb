//! Reference values of the streaming code for any pair (l, e), against which experiments are
//! judged.
//!
//! All of them come from [`tautline_fec::theory`], which documents their derivation and the errors
//! of the paper.

use serde_json::{Map, Value};
use tautline_fec::theory::{Error, Stream};

/// Parameters of the calculation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// l: slots from one repair packet to the next.
    pub interval: u32,
    /// e: probability that the link loses a packet, independently.
    pub erasure_rate: f64,
    /// Share of the code rate that a stream must deliver, above 0 and below 1.
    pub share: f64,
    /// Probability that the stream delivers less than that share, above 0 and below 1.
    pub failure: f64,
}

/// One value, and the paper's if it differs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    /// Name of the quantity in JSON, including the unit.
    pub key: &'static str,
    /// Name of the quantity for readers.
    pub name: &'static str,
    /// Slots, intervals of l slots, or operations; empty if dimensionless.
    pub unit: &'static str,
    /// The right value; `None` beyond the computable range.
    pub value: Option<f64>,
    /// The value printed in the paper, if that is wrong.
    pub printed: Option<f64>,
    /// Place of the quantity in \[STREAM\]; empty if it is not there.
    pub place: &'static str,
}

/// Returns all known quantities of a stream with one repair packet after every `interval - 1`
/// source packets.
///
/// They hold for a link with independent losses and a large field. O(l), plus the length of the
/// highest percentile: seconds at a load close to 1.
///
/// # Errors
/// If there is no such stream, such as one with a load l e of 1 or more, or if a share or
/// probability is invalid.
pub fn quantities(question: &Question) -> Result<Vec<Quantity>, Error> {
    let Question { interval, erasure_rate, share, failure } = *question;
    let stream = Stream::new(interval, erasure_rate)?;
    let goodput = share * stream.code_rate();
    let length = stream.length_for_goodput(goodput, failure)?;
    let (busy, delay) = (stream.busy_time(), stream.delay());
    let percentile = |share: f64| match delay.percentile(share) {
        Ok(slots) => Ok(Some(slots as f64)),
        Err(Error::Beyond { .. }) => Ok(None),
        Err(error) => Err(error),
    };
    let of = |key, name, unit, value: f64, place| Quantity {
        key,
        name,
        unit,
        value: Some(value),
        printed: None,
        place,
    };
    let third = of("busy_time_third_moment", "E[S^3]", "", busy.third_moment(), "eq. (8)");
    let bound = of("delay_bound_slots", "bound on the mean", "slots", delay.bound(), "Theorem 2");
    let operations = of(
        "operations",
        "decoding, of a source packet",
        "operations",
        stream.operations(),
        "Theorem 4",
    );
    let waits = |key, name, share: f64| -> Result<Quantity, Error> {
        Ok(Quantity { value: percentile(share)?, ..of(key, name, "slots", 0.0, "") })
    };
    Ok(vec![
        of("load", "load, l e", "", stream.load(), "Theorem 1"),
        of("code_rate", "code rate, (l - 1) / l", "", stream.code_rate(), "III.C"),
        of("capacity", "capacity of the link, 1 - e", "", 1.0 - erasure_rate, "III.C"),
        of("busy_time_zero", "P(S = 0): nothing lost", "", busy.pmf(0), "eq. (2)"),
        of("busy_time_mean_intervals", "busy time, E[S]", "intervals", busy.mean(), "eq. (3)"),
        of("busy_time_second_moment", "E[S^2]", "", busy.second_moment(), "eq. (4)"),
        Quantity { printed: Some(busy.third_moment_printed()), ..third },
        of("busy_time_decay", "fall of P(S > s) by interval", "", busy.tail_decay(), ""),
        of("period_one", "P(S+ = 1)", "", busy.period_one_probability(), "Corollary 1"),
        of("period_mean_intervals", "period, E[S+]", "intervals", busy.period_mean(), "eq. (5)"),
        of("delay_mean_slots", "in-order delay, mean", "slots", delay.mean(), ""),
        Quantity { printed: Some(delay.bound_printed()), ..bound },
        of("delay_zero", "P(D = 0): no delay", "", delay.zero_probability(), ""),
        waits("delay_p50_slots", "in-order delay, 50 %", 0.5)?,
        waits("delay_p95_slots", "in-order delay, 95 %", 0.95)?,
        waits("delay_p99_slots", "in-order delay, 99 %", 0.99)?,
        waits("delay_p999_slots", "in-order delay, 99.9 %", 0.999)?,
        of("goodput", "throughput asked for", "", goodput, "Theorem 3"),
        of(
            "goodput_length_slots",
            "length that suffices for it",
            "slots",
            length.ceil(),
            "Theorem 3",
        ),
        Quantity { printed: Some(stream.operations_printed()), ..operations },
    ])
}

/// Returns one object with the parameters and each value by its key. Where the paper errs, its
/// value is added with the suffix `_printed`. Values beyond the computable range are `null`.
pub fn to_json(question: &Question, quantities: &[Quantity]) -> Value {
    let Question { interval, erasure_rate, share, failure } = *question;
    let asked = [
        ("interval_slots", Value::from(interval)),
        ("erasure_rate", Value::from(erasure_rate)),
        ("goodput_share", Value::from(share)),
        ("goodput_failure", Value::from(failure)),
    ];
    let mut object: Map<String, Value> =
        asked.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    for quantity in quantities {
        object.insert(quantity.key.to_owned(), Value::from(quantity.value));
        if let Some(printed) = quantity.printed {
            object.insert(format!("{}_printed", quantity.key), Value::from(printed));
        }
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(interval: u32, erasure_rate: f64) -> Question {
        Question { interval, erasure_rate, share: 0.99, failure: 0.01 }
    }

    #[test]
    fn the_values_are_those_of_the_reference() {
        let question = question(5, 0.1);
        let found = quantities(&question).unwrap();
        let json = to_json(&question, &found);
        for (key, value) in [
            ("busy_time_zero", 0.6561),
            ("busy_time_mean_intervals", 0.52488),
            ("busy_time_second_moment", 1.469664),
            ("busy_time_third_moment", 9.027936),
            ("period_mean_intervals", 1.18098),
            ("delay_mean_slots", 2.60394757),
            ("delay_bound_slots", 28.0 / 9.0),
            ("delay_zero", 0.655197378),
            ("delay_p95_slots", 14.0),
            ("delay_p99_slots", 36.0),
            ("interval_slots", 5.0),
            ("erasure_rate", 0.1),
        ] {
            let had = json[key].as_f64().unwrap_or(f64::NAN);
            assert!((had / value - 1.0).abs() < 1e-7, "{key}: {had} for {value}");
        }
        let printed = json["delay_bound_slots_printed"].as_f64().unwrap();
        assert!((printed / (0.8 * 28.0 / 9.0) - 1.0).abs() < 1e-9, "{printed}");
    }

    #[test]
    fn invalid_stream_parameters_are_refused() {
        for (interval, erasure_rate) in [(1, 0.1), (10, 0.1), (4, 0.25), (4, -0.1), (4, f64::NAN)] {
            assert!(
                quantities(&question(interval, erasure_rate)).is_err(),
                "{interval} {erasure_rate}"
            );
        }
        for (share, failure) in [(1.0, 0.01), (-0.1, 0.01), (0.5, 0.0), (0.5, 1.0)] {
            let question = Question { share, failure, ..question(4, 0.1) };
            assert!(quantities(&question).is_err(), "{share} {failure}");
        }
    }

    #[test]
    fn a_link_without_losses_has_its_values_too() {
        let found = quantities(&question(4, 0.0)).unwrap();
        assert!(
            found.iter().all(|quantity| quantity.value.is_some_and(f64::is_finite)),
            "{found:?}"
        );
    }
}

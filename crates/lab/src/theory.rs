//! Reference values of the streaming code for any pair (l, e): what an experiment on it is held against.
//!
//! Everything comes from [`tautline_fec::theory`], which says how each value is had and where the paper
//! errs.

use serde_json::{Map, Value};
use tautline_fec::theory::{Error, Stream};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// l: slots from one repair packet to the next.
    pub interval: u32,
    /// e: share of the packets that the link loses, each alone.
    pub erasure_rate: f64,
    /// Share of the code rate that a stream is to deliver, above 0 and below 1.
    pub share: f64,
    /// Probability that it delivers less, above 0 and below 1.
    pub failure: f64,
}

/// One value, and the paper's where that is another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    /// Its name in JSON, with the unit.
    pub key: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// Slots, intervals of l slots, or operations; empty for what has none.
    pub unit: &'static str,
    /// What is right; none where it lies beyond what can be computed.
    pub value: Option<f64>,
    /// What the paper prints, where it errs.
    pub printed: Option<f64>,
    /// Where in \[STREAM\] it stands; empty where it does not.
    pub place: &'static str,
}

/// Returns everything that is known of one repair packet after every `interval - 1` source packets.
///
/// Over a link that loses packets independently, for a large field. O(l), and as long as the longest of
/// the percentiles: seconds, close to a load of 1.
///
/// # Errors
/// When there is no such stream, as one whose load l e is 1 or more, or a share or a probability is none.
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

/// Returns one object: the question, each value by its key, and beside it, where the paper errs, the
/// paper's with `_printed` behind the key. What is beyond computing is `null`.
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
    fn what_no_stream_is_asked_for_is_refused() {
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

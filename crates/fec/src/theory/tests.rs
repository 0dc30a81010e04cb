//! Reference values, and relations that must hold between the formulas.

use super::*;

/// Reference values: l, e, then the three moments of S, the mean of S+, the bound, the exact mean
/// delay, P(D = 0). Derived independently of this code and checked against the series.
const REFERENCE: [(u32, f64, [f64; 7]); 7] = [
    (2, 0.1, [0.1125, 0.144140625, 0.234118652, 1.0125, 0.142361111, 0.142361111, 0.888888889]),
    (
        4,
        0.05,
        [0.160757813, 0.208482788, 0.352403418, 1.01813281, 0.409539474, 0.273854000, 0.88720416],
    ),
    (4, 0.1, [0.3645, 0.729, 2.673, 1.0935, 1.33333333, 1.05807042, 0.743484225]),
    (4, 0.2, [1.536, 26.112, 1304.064, 2.048, 25.5, 24.9427083, 0.317708333]),
    (5, 0.1, [0.52488, 1.469664, 9.027936, 1.18098, 3.11111111, 2.60394757, 0.655197378]),
    (
        8,
        0.05,
        [0.407363423, 0.837358147, 3.27399492, 1.10570072, 3.02923977, 2.23971447, 0.740524768],
    ),
    (
        10,
        0.05,
        [0.567224469, 1.64495096, 10.8056261, 1.19747388, 6.86842105, 5.57437518, 0.651859380],
    ),
];

/// Streams from nearly idle to nearly overloaded.
const STREAMS: [(u32, f64); 12] = [
    (2, 1e-6),
    (2, 0.1),
    (2, 0.45),
    (3, 0.2),
    (4, 0.05),
    (5, 0.1),
    (5, 0.18),
    (10, 0.05),
    (25, 0.02),
    (25, 0.036),
    (100, 0.001),
    (100, 0.008),
];

#[test]
fn the_reference_values_come_out() {
    for (interval, erasure_rate, expected) in REFERENCE {
        let stream = stream((interval, erasure_rate));
        let (busy, delay) = (stream.busy_time(), stream.delay());
        let given = [
            busy.mean(),
            busy.second_moment(),
            busy.third_moment(),
            busy.period_mean(),
            delay.bound(),
            delay.mean(),
            delay.zero_probability(),
        ];
        for (given, expected) in given.into_iter().zip(expected) {
            assert_near(given, expected, 1e-8, &format!("{stream:?}"));
        }
    }
}

#[test]
fn the_busy_time_of_five_slots_at_a_tenth_is_the_reference_one() {
    let busy = stream((5, 0.1)).busy_time();
    let expected = [0.6561, 0.26244, 0.043046721, 0.01694577219, 0.008431241859];
    for (intervals, expected) in (0..).zip(expected) {
        assert_near(busy.pmf(intervals), expected, 1e-9, "pmf");
    }
}

#[test]
fn operations_are_the_reference_table() {
    let table = [
        (0.02, [0.274939, 0.784855, 2.924223, 17.50694, 331.4536]),
        (0.1, [1.274074, 3.605324, 13.38272, 80.07407, 1518.074]),
    ];
    for (erasure_rate, row) in table {
        for (load, expected) in [0.5_f64, 0.6, 0.7, 0.8, 0.9].into_iter().zip(row) {
            let interval = (load / erasure_rate).round() as u32;
            let given = stream((interval, erasure_rate)).operations();
            // The table has six or seven digits.
            assert!((given - expected).abs() <= expected * 2e-6, "{given} for {expected}");
        }
    }
}

#[test]
fn operations_as_printed_are_the_papers_table() {
    let table =
        [(0.02, [0.67, 1.93, 7.11, 41.74, 769.58]), (0.1, [3.13, 8.87, 32.56, 190.96, 3525.0])];
    for (erasure_rate, row) in table {
        for (load, printed) in [0.5_f64, 0.6, 0.7, 0.8, 0.9].into_iter().zip(row) {
            let interval = (load / erasure_rate).round() as u32;
            let given = stream((interval, erasure_rate)).operations_printed();
            // The paper truncates after two decimals, in one case after none.
            assert!((0.0..0.02).contains(&(given - printed)), "{given} for {printed}");
        }
    }
}

#[test]
fn the_bound_holds_and_the_printed_one_does_not() {
    for pair in STREAMS {
        let delay = stream(pair).delay();
        assert!(delay.mean() <= delay.bound() * (1.0 + 1e-12), "{pair:?}");
    }
    let violated = stream((2, 0.1)).delay();
    assert_near(violated.bound_printed(), 0.0711805555, 1e-8, "printed");
    assert!(violated.mean() > violated.bound_printed());
}

#[test]
fn the_busy_times_probabilities_sum_to_one_and_to_its_moments() {
    for pair in STREAMS {
        let busy = stream(pair).busy_time();
        let (mut sums, mut s) = ([0.0; 4], 0);
        loop {
            let probability = busy.pmf(s);
            let value = s as f64;
            for (power, sum) in (0..).zip(&mut sums) {
                *sum += probability * value.powi(power);
            }
            s += 1;
            if probability * value.powi(4) < 1e-14 && s > 10 {
                break;
            }
        }
        let moments = [1.0, busy.mean(), busy.second_moment(), busy.third_moment()];
        for (sum, moment) in sums.into_iter().zip(moments) {
            assert_near(sum, moment, 1e-9, &format!("{pair:?}"));
        }
        assert_near(busy.pmf(0) + busy.pmf(1), busy.period_one_probability(), 1e-13, "S+ = 1");
        assert_near(busy.mean() + busy.pmf(0), busy.period_mean(), 1e-12, "E[S+]");
    }
}

#[test]
fn each_moment_is_the_derivative_of_the_one_before() {
    for (interval, e) in STREAMS {
        let step = e * 1e-4;
        let at = |shift: f64| stream((interval, e + shift)).busy_time();
        let factor = e * (1.0 - e) / (1.0 - f64::from(interval) * e);
        // A difference of fourth order: its error is far below the tolerance.
        let derivative = |moment: fn(&BusyTime) -> f64| {
            let near = moment(&at(step)) - moment(&at(-step));
            let far = moment(&at(2.0 * step)) - moment(&at(-2.0 * step));
            (8.0 * near - far) / (12.0 * step)
        };
        let busy = at(0.0);
        let second = factor * derivative(BusyTime::mean);
        assert_near(second, busy.second_moment(), 1e-8, &format!("second, {interval} {e}"));
        let third = factor * derivative(BusyTime::second_moment);
        assert_near(third, busy.third_moment(), 1e-8, &format!("third, {interval} {e}"));
    }
}

#[test]
fn the_moments_as_printed_are_too_high() {
    for (pair, low, high) in [((25, 0.02), 1.05, 1.12), ((45, 0.02), 1.02, 1.04)] {
        let busy = stream(pair).busy_time();
        let ratio = busy.third_moment_printed() / busy.third_moment();
        assert!((low..high).contains(&ratio), "{pair:?}: {ratio}");
    }
}

#[test]
fn survival_is_the_tail_of_the_distribution_in_both_sums() {
    for pair in STREAMS {
        let busy = stream(pair).busy_time();
        assert_near(busy.survival(0), 1.0 - busy.pmf(0), 1e-9, "P(S > 0)");
        for s in [1, 2, 5, 20, 100, 1_000] {
            let (above, below) = (busy.survival(s), busy.survival(s - 1));
            assert!((below - above - busy.pmf(s)).abs() <= 1e-11 * below, "{pair:?} {s}");
            assert!(above <= busy.chernoff(s), "{pair:?} {s}");
        }
    }
}

#[test]
fn the_tail_falls_by_its_decay_and_never_faster_at_first() {
    for pair in STREAMS {
        let busy = stream(pair).busy_time();
        let decay = busy.tail_decay();
        assert!(decay < 1.0);
        let mut last = 0.0;
        for s in 1..200 {
            let ratio = busy.pmf(s + 1) / busy.pmf(s);
            if busy.pmf(s + 1) < f64::MIN_POSITIVE {
                break;
            }
            assert!(
                ratio < decay && ratio >= last * (1.0 - 1e-11),
                "{pair:?} {s}: {ratio} {decay}"
            );
            last = ratio;
        }
    }
    let busy = stream((100, 0.0099)).busy_time();
    assert_near(busy.pmf(1_000_001) / busy.pmf(1_000_000), busy.tail_decay(), 2e-6, "far out");
}

#[test]
fn the_delays_distribution_has_its_mean_and_its_zeroes() {
    for pair in STREAMS {
        let delay = stream(pair).delay();
        let l = u64::from(pair.0);
        let (mut mean, mut slots) = (0.0, 0);
        let mut rest = 1.0;
        // A direct sum of `pmf`, which walks from the start each time.
        while slots < 40 * l {
            let probability = delay.pmf(slots);
            assert!(slots % l != 0 || slots == 0 || probability == 0.0);
            mean += probability * slots as f64;
            rest -= probability;
            assert!((delay.tail(slots) - rest).abs() < 1e-12, "{pair:?} {slots}");
            slots += 1;
        }
        if delay.tail(slots) < 1e-12 {
            assert_near(mean, delay.mean(), 1e-9, &format!("{pair:?}"));
        }
    }
}

#[test]
fn the_mean_delay_is_the_sum_of_the_tails() {
    for pair in [(2, 0.45), (4, 0.2), (5, 0.18), (10, 0.05), (25, 0.036), (100, 0.008)] {
        let stream = stream(pair);
        let end = (60.0 * f64::from(pair.0) / -stream.busy_time().tail_decay().ln()) as u64;
        // E[D] is the sum over d of P(D > d), by steps from one value to the next.
        let delay = stream.delay();
        let mut walk = 1.0 - delay.zero_probability();
        let mut sum = walk;
        for slots in 1..end.min(6_000) {
            walk -= delay.pmf(slots);
            sum += walk;
        }
        if end <= 6_000 {
            assert_near(sum, delay.mean(), 1e-8, &format!("{pair:?}"));
        }
    }
}

#[test]
fn percentiles_are_those_of_the_tail() {
    for pair in STREAMS {
        let delay = stream(pair).delay();
        for share in [0.5, 0.95, 0.99, 0.9999] {
            let slots = delay.percentile(share).unwrap();
            assert!(delay.tail(slots) <= 1.0 - share + 1e-12, "{pair:?} {share}");
            assert!(slots == 0 || delay.tail(slots - 1) > 1.0 - share - 1e-12, "{pair:?} {share}");
        }
    }
    for share in [0.0, 1.0, f64::NAN] {
        assert!(stream((5, 0.1)).delay().percentile(share).is_err());
    }
}

/// Percentiles of the reference simulation, whose own error shifts the larger ones by some slots.
#[test]
fn percentiles_are_near_those_of_the_reference_simulation() {
    for (pair, p95, p99) in [
        ((2, 0.1), 1, 3),
        ((4, 0.05), 2, 6),
        ((4, 0.1), 6, 15),
        ((4, 0.2), 122, 257),
        ((5, 0.1), 14, 36),
        ((8, 0.05), 13, 35),
        ((10, 0.05), 32, 76),
    ] {
        let delay = stream(pair).delay();
        for (share, simulated) in [(0.95, p95), (0.99, p99)] {
            let exact = delay.percentile(share).unwrap();
            let allowed = (simulated / 50).max(1);
            assert!(exact.abs_diff(simulated) <= allowed, "{pair:?} {share}: {exact} {simulated}");
        }
    }
}

#[test]
fn goodput_near_the_code_rate_needs_a_long_stream() {
    let stream = stream((5, 0.1));
    // z = 1/2: (1 + z)/(1 - z)^2 = 6; 4 * 6 ln(100) / 0.1.
    let length = stream.length_for_goodput(0.7, 0.01).unwrap();
    assert_near(length, 4.0 * 6.0 * 100_f64.ln() / 0.1, 1e-12, "length");
    assert!(stream.length_for_goodput(0.79, 0.01).unwrap() > length);
    assert!(matches!(stream.length_for_goodput(0.8, 0.01), Err(Error::Goodput { .. })));
    assert!(matches!(stream.length_for_goodput(0.7, 0.0), Err(Error::Probability { .. })));
}

#[test]
fn close_to_the_capacity_every_answer_comes() {
    for load in [0.999, 1.0 - 1e-6, 1.0 - 1e-9, 1.0 - 1e-15] {
        let stream = stream((5, load / 5.0));
        let (busy, delay) = (stream.busy_time(), stream.delay());
        assert!(busy.tail_decay() <= 1.0 + 1e-15);
        // As for a random walk: P(S > s) falls with the square root of s.
        let ratio = busy.survival(1_000) / busy.survival(10_000);
        assert!((3.0..3.5).contains(&ratio) || load < 0.9999, "{load}: {ratio}");
        assert!(delay.mean() > 0.4 / (1.0 - stream.load()).powi(2), "{load}");
        assert!(delay.tail(1_000) > 0.9, "{load}");
    }
    let percentile = stream((2, 0.5 - 1e-9)).delay().percentile(0.9);
    assert_eq!(percentile, Err(Error::Beyond { share: 0.9, slots: PERCENTILE_MAX }));
}

#[test]
fn without_losses_nothing_waits() {
    let stream = stream((10, 0.0));
    let (busy, delay) = (stream.busy_time(), stream.delay());
    assert_eq!((busy.pmf(0), busy.pmf(1), busy.mean(), busy.third_moment()), (1.0, 0.0, 0.0, 0.0));
    assert_eq!((delay.mean(), delay.zero_probability(), delay.tail(0)), (0.0, 1.0, 0.0));
    assert_eq!(delay.percentile(0.999), Ok(0));
    assert_eq!((stream.operations(), delay.bound(), busy.survival(3)), (0.0, 0.0, 0.0));
}

#[test]
fn a_stream_that_never_catches_up_is_refused() {
    assert!(matches!(Stream::new(1, 0.1), Err(Error::Interval { interval: 1 })));
    assert!(matches!(Stream::new(10, 0.1), Err(Error::Overload { .. })));
    for erasure_rate in [-0.1, 1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(Stream::new(2, erasure_rate), Err(Error::ErasureRate { .. })));
    }
}

fn stream((interval, erasure_rate): (u32, f64)) -> Stream {
    Stream::new(interval, erasure_rate).unwrap()
}

#[track_caller]
fn assert_near(given: f64, expected: f64, tolerance: f64, what: &str) {
    let error = (given - expected).abs() / expected.abs();
    assert!(error <= tolerance, "{what}: {given} for {expected}, off by {error:e}");
}

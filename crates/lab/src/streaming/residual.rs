//! What a block code without feedback leaves lost.

use super::link::chain;

/// Returns the share of source packets that stay lost with blocks of `source_count` packets and
/// `repair_count` repair packets: those lost in a block that loses more than it can mend.
///
/// Erasures as of [`chain`]; any source_count packets are taken to suffice. Exact: the number of
/// losses among source and repair packets is followed slot by slot. O(k^2 + (n - k)^2).
pub(super) fn residual_loss(
    source_count: usize,
    repair_count: usize,
    erasure_rate: f64,
    burst: f64,
) -> f64 {
    let after = chain(erasure_rate, burst);
    let begin = [1.0 - erasure_rate, erasure_rate];
    let sources = losses(begin, after, source_count);
    let repairs =
        [losses([1.0, 0.0], after, repair_count), losses([0.0, 1.0], after, repair_count)];
    // Probability that more than so many repair packets are lost, by the state before them.
    let more = repairs.map(|states| {
        let mut tail = vec![0.0; repair_count + 1];
        for count in (0..repair_count).rev() {
            tail[count] = tail[count + 1] + states[0][count + 1] + states[1][count + 1];
        }
        tail
    });
    let mut lost = 0.0;
    for state in [0, 1] {
        for (count, probability) in sources[state].iter().enumerate().skip(1) {
            let fails = match repair_count.checked_sub(count) {
                Some(spare) => more[state][spare],
                None => 1.0,
            };
            lost += count as f64 * probability * fails;
        }
    }
    lost / source_count as f64
}

/// Returns the probabilities of each number of losses in `slots` slots, by whether the last packet
/// was lost, when `begin` are the probabilities that the one before was not and was.
fn losses(begin: [f64; 2], after: [f64; 2], slots: usize) -> [Vec<f64>; 2] {
    let mut states = [vec![0.0; slots + 1], vec![0.0; slots + 1]];
    for state in [0, 1] {
        states[state][0] = begin[state];
    }
    for slot in 1..=slots {
        for count in (0..=slot).rev() {
            let [came, lost] = [states[0][count], states[1][count]];
            let came = came * (1.0 - after[0]) + lost * (1.0 - after[1]);
            let lost = match count.checked_sub(1) {
                Some(less) => states[0][less] * after[0] + states[1][less] * after[1],
                None => 0.0,
            };
            (states[0][count], states[1][count]) = (came, lost);
        }
    }
    states
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn independent_losses_give_the_binomial_formula() {
        // A packet stays lost when it and n - k or more of the other n - 1 are: n = 3, k = 2.
        let e: f64 = 0.1;
        let expected = e * (1.0 - (1.0 - e).powi(2));
        assert!((residual_loss(2, 1, e, 1.0) - expected).abs() < 1e-15);
        // Without repair packets everything lost stays lost.
        for burst in [1.0, 4.0] {
            assert!((residual_loss(7, 0, e, burst) - e).abs() < 1e-15);
        }
    }

    #[test]
    fn bursts_leave_more_lost() {
        let at = |burst| residual_loss(20, 5, 0.05, burst);
        assert!(at(1.0) < at(2.0) && at(2.0) < at(4.0));
    }
}

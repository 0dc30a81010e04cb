use std::collections::VecDeque;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::config::Bbr;
use super::foreign::{Foreign, WINDOW_FIRST, nanos};

/// A bulk TCP flow of another sender in the link's queue, with BBRv1 ([BBR]) and unlimited data.
///
/// As published: the bandwidth is the maximum of ten round trips, the round-trip time the minimum
/// of 10 s. It has startup, drain, the cycle of eight gains, and ProbeRTT: 200 ms at four packets
/// after 10 s without a new minimum. Left out are packet conservation after a loss, timeouts,
/// policer detection, and allowances for aggregated acknowledgements, which came with later
/// implementations. The sender learns the fate of a packet one round trip after it left the queue;
/// that of a dropped packet, with the packet before it.
#[derive(Debug)]
pub(super) struct Flow {
    rtt: u64,
    from: u64,
    until: u64,
    begun: bool,
    rng: ChaCha8Rng,
    state: State,
    /// True once the rate has grown by less than 25 % for three round trips of the startup.
    filled: bool,
    in_flight: u64,
    /// Pending acknowledgements, in order of time.
    answers: VecDeque<Answer>,
    /// Number of packets of the flow acknowledged since its start.
    delivered: u64,
    /// Time of the latest acknowledgement, or of a later packet sent with none in flight; ns.
    delivered_at: u64,
    /// Number of the flow's current round trip.
    round: u64,
    /// Value of `delivered` at which the current round trip ends.
    round_ends: u64,
    /// Windowed maximum filter: number of the round trip, and rate in packets per nanosecond; rates
    /// decrease from front to back.
    rates: VecDeque<(u64, f64)>,
    /// Minimum round-trip time in ns; `u64::MAX` before the first sample.
    rtt_min: u64,
    /// Time of the sample `rtt_min`, or of the end of the last ProbeRTT; ns.
    rtt_min_at: u64,
    /// Rate at the last growth of 25 % in startup, in packets per nanosecond.
    rate_full: f64,
    /// Number of round trips of the startup since the rate last grew by 25 %.
    rounds_full: u32,
    /// Congestion window of the flow in packets.
    window: f64,
    /// Congestion window before ProbeRTT, in packets.
    window_former: f64,
    /// Earliest send time of the next packet, by the pacing rate; ns.
    send_at: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Startup,
    Drain,
    Cycle {
        phase: usize,
        since: u64,
        lost: bool,
    },
    /// ProbeRTT. `until`, in ns, is set once at most four packets are in flight; the state ends
    /// after it, and not before a whole round trip.
    ProbeRtt {
        until: Option<u64>,
        round_is_over: bool,
    },
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    at: u64,
    sent_at: u64,
    arrived: bool,
    /// Value of [`Flow::delivered`] when the packet was sent.
    delivered: u64,
    /// Value of [`Flow::delivered_at`] when the packet was sent.
    delivered_at: u64,
}

impl Flow {
    pub(super) fn new(config: &Bbr, rng: ChaCha8Rng) -> Self {
        let rtt = nanos(config.rtt_ms / 1e3);
        Self {
            rtt,
            from: nanos(config.from_s),
            until: config.until_s.map_or(u64::MAX, nanos),
            begun: false,
            rng,
            state: State::Startup,
            filled: false,
            in_flight: 0,
            answers: VecDeque::new(),
            delivered: 0,
            delivered_at: 0,
            round: 0,
            round_ends: 0,
            rates: VecDeque::new(),
            rtt_min: u64::MAX,
            rtt_min_at: 0,
            rate_full: 0.0,
            rounds_full: 0,
            window: WINDOW_FIRST,
            window_former: WINDOW_FIRST,
            send_at: 0,
        }
    }

    /// Returns the bottleneck bandwidth in packets per nanosecond; before the first sample, the
    /// initial window per round trip.
    fn rate(&self) -> f64 {
        self.rates.front().map_or(WINDOW_FIRST / self.rtt as f64, |(_, rate)| *rate)
    }

    /// Returns the bandwidth-delay product in packets; before the first sample, the initial window.
    fn bdp(&self) -> f64 {
        match self.rtt_min {
            u64::MAX => WINDOW_FIRST,
            rtt => self.rate() * rtt as f64,
        }
    }

    /// Returns the pacing gain and the window gain.
    fn gains(&self) -> (f64, f64) {
        match self.state {
            State::Startup => (GAIN_HIGH, GAIN_HIGH),
            State::Drain => (1.0 / GAIN_HIGH, GAIN_HIGH),
            State::Cycle { phase, .. } => (GAINS[phase], GAIN_WINDOW),
            State::ProbeRtt { .. } => (1.0, 1.0),
        }
    }

    fn sends_at(&self) -> Option<u64> {
        let open = self.begun && (self.in_flight as f64) < self.window.floor();
        Some(self.send_at).filter(|at| open && *at < self.until)
    }

    fn take(&mut self, answer: Answer) {
        let Answer { at, sent_at, arrived, delivered, delivered_at } = answer;
        self.in_flight -= 1;
        if !arrived {
            if let State::Cycle { lost, .. } = &mut self.state {
                *lost = true;
            }
            return;
        }
        self.delivered += 1;
        self.delivered_at = at;
        let round_begins = delivered >= self.round_ends;
        if round_begins {
            self.round += 1;
            self.round_ends = self.delivered;
        }
        if at > delivered_at {
            self.note_rate((self.delivered - delivered) as f64 / (at - delivered_at) as f64);
        }
        if round_begins && !self.filled {
            self.look_whether_full();
        }
        self.go_on(at);
        self.note_rtt(at - sent_at, round_begins, at);
        self.open_window();
    }

    fn note_rate(&mut self, rate: f64) {
        while self.rates.back().is_some_and(|(_, other)| *other <= rate) {
            self.rates.pop_back();
        }
        self.rates.push_back((self.round, rate));
        while self.rates.front().is_some_and(|(round, _)| round + ROUNDS <= self.round) {
            self.rates.pop_front();
        }
    }

    /// Marks the pipe as filled once the rate has grown by less than 25 % for three round trips.
    /// Called at the beginning of each round trip of the startup.
    fn look_whether_full(&mut self) {
        if self.rate() >= self.rate_full * GROWS {
            (self.rate_full, self.rounds_full) = (self.rate(), 0);
            return;
        }
        self.rounds_full += 1;
        self.filled = self.rounds_full >= ROUNDS_FULL;
    }

    /// Moves from startup to drain if the pipe is filled, from drain to the cycle if the queue is
    /// drained, and to the next phase of the cycle if the present one is over at `at`, in ns.
    fn go_on(&mut self, at: u64) {
        let (in_flight, bdp) = (self.in_flight as f64, self.bdp());
        if self.state == State::Startup && self.filled {
            self.state = State::Drain;
        }
        if self.state == State::Drain && in_flight <= bdp {
            self.begin_cycle(at);
        }
        let State::Cycle { phase, since, lost } = self.state else { return };
        let gain = GAINS[phase];
        let is_over = at - since > self.rtt_min;
        let goes_on = if gain > 1.0 {
            is_over && (lost || in_flight >= gain * bdp)
        } else {
            is_over || (gain < 1.0 && in_flight <= bdp)
        };
        if goes_on {
            let phase = (phase + 1) % GAINS.len();
            self.state = State::Cycle { phase, since: at, lost: false };
        }
    }

    /// Begins the cycle in a random phase other than the draining one.
    fn begin_cycle(&mut self, at: u64) {
        let phase = match self.rng.random_range(0..GAINS.len() - 1) {
            0 => 0,
            later => later + 1,
        };
        self.state = State::Cycle { phase, since: at, lost: false };
    }

    /// Updates the minimum round-trip time by a sample taken at `at`, in ns. Enters ProbeRTT when
    /// the minimum is older than 10 s, and leaves it when its time is over.
    fn note_rtt(&mut self, rtt: u64, round_begins: bool, at: u64) {
        let is_old = at > self.rtt_min_at + RTT_LIFE;
        if rtt <= self.rtt_min || is_old {
            (self.rtt_min, self.rtt_min_at) = (rtt, at);
        }
        let is_probing = matches!(self.state, State::ProbeRtt { .. });
        if is_old && !is_probing {
            self.window_former = self.window;
            self.state = State::ProbeRtt { until: None, round_is_over: false };
        }
        let State::ProbeRtt { until, round_is_over } = self.state else { return };
        match until {
            None if self.in_flight as f64 <= WINDOW_LEAST => {
                self.round_ends = self.delivered;
                self.state = State::ProbeRtt { until: Some(at + PROBE_RTT), round_is_over: false };
            }
            None => {}
            Some(until) => {
                let round_is_over = round_is_over || round_begins;
                self.state = State::ProbeRtt { until: Some(until), round_is_over };
                if round_is_over && at > until {
                    self.rtt_min_at = at;
                    self.window = self.window.max(self.window_former);
                    match self.filled {
                        true => self.begin_cycle(at),
                        false => self.state = State::Startup,
                    }
                }
            }
        }
    }

    fn open_window(&mut self) {
        let target = self.gains().1 * self.bdp();
        if self.filled {
            self.window = (self.window + 1.0).min(target);
        } else if self.window < target || (self.delivered as f64) < WINDOW_FIRST {
            self.window += 1.0;
        }
        self.window = self.window.max(WINDOW_LEAST);
        if let State::ProbeRtt { .. } = self.state {
            self.window = self.window.min(WINDOW_LEAST);
        }
    }
}

impl Foreign for Flow {
    fn next_at(&self) -> Option<u64> {
        if !self.begun {
            return Some(self.from);
        }
        let answer = self.answers.front().map(|answer| answer.at);
        answer.into_iter().chain(self.sends_at()).min()
    }

    fn advance(&mut self, at: u64) {
        if !self.begun && at >= self.from {
            self.begun = true;
            (self.send_at, self.rtt_min_at, self.delivered_at) = (at, at, at);
        }
        while let Some(answer) = self.answers.front().copied().filter(|answer| answer.at <= at) {
            self.answers.pop_front();
            self.take(answer);
        }
    }

    fn may_send(&self, at: u64) -> bool {
        self.sends_at().is_some_and(|sends_at| sends_at <= at)
    }

    fn on_sent(&mut self, at: u64, departure: u64, arrived: bool) {
        if self.in_flight == 0 {
            self.delivered_at = at;
        }
        // Acknowledgements come in sending order, even for packets reordered in the network.
        let known_at = departure.saturating_add(self.rtt);
        let known_at = self.answers.back().map_or(known_at, |last| last.at.max(known_at));
        self.answers.push_back(Answer {
            at: known_at,
            sent_at: at,
            arrived,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
        });
        self.in_flight += 1;
        let interval = 1.0 / (self.gains().0 * self.rate());
        self.send_at = self.send_at.max(at) + interval as u64;
    }
}

/// Pacing and window gain of Startup, 2 / ln 2: the lowest gain that doubles the rate each round
/// trip.
const GAIN_HIGH: f64 = 2.885;
const GAIN_WINDOW: f64 = 2.0;
const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Number of newest round trips whose greatest delivery rate is the estimate of the bandwidth.
const ROUNDS: u64 = 10;
const GROWS: f64 = 1.25;
const ROUNDS_FULL: u32 = 3;
const RTT_LIFE: u64 = 10_000_000_000;
const PROBE_RTT: u64 = 200_000_000;
const WINDOW_LEAST: f64 = 4.0;

#[cfg(test)]
mod tests {
    use rand_chacha::rand_core::SeedableRng;
    use tautline_units::{Bitrate, Duration, Instant};

    use super::*;
    use crate::link::{Config, Cubic, Link, cubic};

    /// Returns a link of 10 Mbit/s with a queue of 1 MB; its BDP at 30 ms is 37,500 bytes.
    fn of(bbr: Vec<Bbr>) -> Link<()> {
        let config = Config::of_rate(Bitrate::from_mbps(10));
        Link::new(&Config { queue_bytes: 1_000_000, bbr, ..config }, 7).expect("a sound link")
    }

    fn from(from_s: f64) -> Bbr {
        Bbr { rtt_ms: 30.0, from_s, until_s: None }
    }

    /// Samples the queue every millisecond from `range.0` to `range.1`, in s. Returns the
    /// utilisation of the link and the sorted queue lengths in bytes.
    fn watch(link: &mut Link<()>, range: (u64, u64)) -> (f64, Vec<u64>) {
        link.pop(Instant::from_millis(range.0 * 1_000));
        let before = link.counters().foreign_bytes;
        let mut waited = Vec::new();
        for at in range.0 * 1_000..range.1 * 1_000 {
            link.pop(Instant::from_millis(at));
            waited.push(link.queued().get());
        }
        let bytes = link.counters().foreign_bytes - before;
        let rate = Bitrate::of(bytes, Duration::from_secs(range.1 - range.0));
        waited.sort_unstable();
        (rate.as_f64() / 10e6, waited)
    }

    #[test]
    fn alone_it_fills_the_link_with_a_queue_below_one_bdp() {
        let mut link = of(vec![from(0.0)]);
        let (used, waited) = watch(&mut link, (2, 62));
        // Every 10 s it sends at most four packets for 200 ms.
        assert!((0.95..1.0).contains(&used), "{used}");
        assert!(waited[waited.len() / 2] < 6_000, "{}", waited[waited.len() / 2]);
        assert!(waited[waited.len() - 1] <= BDP_BYTES, "{}", waited[waited.len() - 1]);
    }

    #[test]
    fn startup_fills_the_queue_and_drain_empties_it() {
        let mut link = of(vec![from(0.0)]);
        let (_, begun) = watch(&mut link, (0, 1));
        let most = begun[begun.len() - 1];
        // A window of 2.885 times the BDP leaves 1.885 of it in the queue.
        assert!((BDP_BYTES..2 * BDP_BYTES + 6_000).contains(&most), "{most}");
        let (used, waited) = watch(&mut link, (1, 2));
        assert!(used > 0.9, "{used}");
        assert!(waited[waited.len() / 2] < BDP_BYTES / 4, "{}", waited[waited.len() / 2]);
    }

    #[test]
    fn it_drains_the_link_every_ten_seconds() {
        let mut link = of(vec![from(0.0), from(0.0)]);
        let (_, waited) = watch(&mut link, (5, 35));
        let empty = waited.iter().filter(|bytes| **bytes == 0).count();
        // 200 ms at four packets, two or three times, and little else: two flows together keep a
        // queue.
        assert!((200..3_000).contains(&empty), "{empty} ms");
    }

    /// Lets flows share 10 Mbit/s and a queue of `packets` packets; returns each one's share of the
    /// packets sent from 20 to 80 s.
    fn shares(packets: usize, mut flows: Vec<Box<dyn Foreign>>) -> Vec<f64> {
        let (mut waiting, mut busy_until) = (VecDeque::new(), 0);
        let mut sent = vec![0.0; flows.len()];
        loop {
            let due = flows.iter().enumerate().filter_map(|(flow, it)| Some((it.next_at()?, flow)));
            let (at, flow) = due.min().expect("none ever ends");
            if at > 80_000_000_000 {
                break;
            }
            waiting.retain(|departure| *departure > at);
            flows[flow].advance(at);
            while flows[flow].may_send(at) {
                let arrived = waiting.len() < packets;
                if arrived {
                    busy_until = at.max(busy_until) + 1_200_000;
                    waiting.push_back(busy_until);
                    sent[flow] += f64::from(u8::from(at > 20_000_000_000));
                }
                flows[flow].on_sent(at, busy_until.max(at), arrived);
            }
        }
        let all: f64 = sent.iter().sum();
        sent.iter().map(|sent| sent / all).collect()
    }

    fn bbr(from_s: f64, seed: u64) -> Box<dyn Foreign> {
        Box::new(Flow::new(&from(from_s), ChaCha8Rng::seed_from_u64(seed)))
    }

    #[test]
    fn two_share_the_link_whichever_was_first() {
        for packets in [50, 100, 400] {
            let shares = shares(packets, vec![bbr(0.0, 1), bbr(8.0, 2)]);
            assert!((0.3..0.7).contains(&shares[0]), "{packets}: {shares:?}");
        }
    }

    #[test]
    fn against_cubic_its_share_falls_with_the_queue_length() {
        let cubic = Cubic { rtt_ms: 30.0, from_s: 0.0, until_s: None };
        let share =
            |packets| shares(packets, vec![bbr(0.0, 1), Box::new(cubic::Flow::new(&cubic))])[0];
        let (short, long) = (share(12), share(400));
        assert!(short > 0.7, "{short}");
        assert!((0.1..0.5).contains(&long), "{long}");
    }

    const BDP_BYTES: u64 = 37_500;
}

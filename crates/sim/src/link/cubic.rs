use std::collections::VecDeque;

use super::config::Cubic;
use super::foreign::{Foreign, WINDOW_FIRST, nanos};

/// A bulk TCP flow of another sender in the link's queue, with CUBIC ([RFC9438]), selective
/// acknowledgements and unlimited data.
///
/// The window is reduced once per round trip, and never falls below Reno's estimate. There is no
/// pacing, no HyStart and no timeout. The sender learns the fate of a packet one round trip after
/// it left the queue; that of a dropped packet, with the packet before it.
#[derive(Debug)]
pub(super) struct Flow {
    rtt: u64,
    from: u64,
    until: u64,
    begun: bool,
    /// Number of packets that the flow has sent since its start.
    sent: u64,
    in_flight: u64,
    /// Pending acknowledgements, in order of time.
    answers: VecDeque<Answer>,
    /// Congestion window of the flow in packets.
    window: f64,
    /// Slow start threshold in packets; infinite before the first reduction.
    threshold: f64,
    /// Window from which the last reduction began, in packets, lowered for fast convergence.
    former: f64,
    /// Time of the last reduction in ns; `None` before the first.
    reduced_at: Option<u64>,
    /// Window that Reno would have since the last reduction, in packets.
    reno: f64,
    /// Losses of packets below this number belong to the last reduction.
    recovery: u64,
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    at: u64,
    number: u64,
    arrived: bool,
}

impl Flow {
    pub(super) fn new(config: &Cubic) -> Self {
        Self {
            rtt: nanos(config.rtt_ms / 1e3),
            from: nanos(config.from_s),
            until: config.until_s.map_or(u64::MAX, nanos),
            begun: false,
            sent: 0,
            in_flight: 0,
            answers: VecDeque::new(),
            window: WINDOW_FIRST,
            threshold: f64::INFINITY,
            former: 0.0,
            reduced_at: None,
            reno: 0.0,
            recovery: 0,
        }
    }

    fn grow(&mut self, at: u64) {
        let Some(reduced_at) = self.reduced_at.filter(|_| self.window >= self.threshold) else {
            self.window += 1.0;
            return;
        };
        let seconds = (at - reduced_at + self.rtt) as f64 / 1e9;
        let plateau = (self.former * (1.0 - BETA) / SCALE).cbrt();
        let cubic = SCALE * (seconds - plateau).powi(3) + self.former;
        let target = cubic.clamp(self.window, self.window * 1.5);
        self.window += (target - self.window) / self.window;
        self.reno += RENO_GROWTH / self.window;
        self.window = self.window.max(self.reno);
    }

    fn reduce(&mut self, at: u64) {
        // Fast convergence: a window below the former maximum releases bandwidth to others.
        let shrinks = self.window < self.former;
        self.former = if shrinks { self.window * (1.0 + BETA) / 2.0 } else { self.window };
        self.window = (self.window * BETA).max(WINDOW_LEAST);
        (self.threshold, self.reno) = (self.window, self.window);
        (self.reduced_at, self.recovery) = (Some(at), self.sent);
    }
}

impl Foreign for Flow {
    fn next_at(&self) -> Option<u64> {
        match self.begun {
            false => Some(self.from),
            true => self.answers.front().map(|answer| answer.at),
        }
    }

    fn advance(&mut self, at: u64) {
        self.begun |= at >= self.from;
        while let Some(answer) = self.answers.front().copied().filter(|answer| answer.at <= at) {
            self.answers.pop_front();
            self.in_flight -= 1;
            match answer.arrived {
                true => self.grow(at),
                false if answer.number >= self.recovery => self.reduce(at),
                false => {}
            }
        }
    }

    fn may_send(&self, at: u64) -> bool {
        self.begun && at < self.until && (self.in_flight as f64) < self.window.floor()
    }

    fn on_sent(&mut self, _at: u64, departure: u64, arrived: bool) {
        let at = departure.saturating_add(self.rtt);
        self.answers.push_back(Answer { at, number: self.sent, arrived });
        self.sent += 1;
        self.in_flight += 1;
    }
}

const WINDOW_LEAST: f64 = 2.0;
/// Factor on the window at a reduction ([RFC9438] 4.6).
const BETA: f64 = 0.7;
/// Scale of the cubic growth ([RFC9438] 5).
const SCALE: f64 = 0.4;
/// Packets by which Reno's estimate grows per window of acknowledgements ([RFC9438] 4.3):
/// 3 (1 - beta) / (1 + beta).
const RENO_GROWTH: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

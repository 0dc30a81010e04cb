//! What a link does whose way out is too thin for all that is no media: pongs, pings, reports, commands.

use tautline_units::{Bitrate, Duration, Instant};

use super::Link;
use super::sparing::{PAUSES, PINGS};
use crate::config::Config;
use crate::rate::Cause;
use crate::wire::Cadence;

impl Link {
    /// Returns whether the link's way out is too thin for all that is no media.
    pub(crate) fn is_sparing(&self) -> bool {
        self.sparing.step() > 0
    }

    /// Returns whether it is too thin even so.
    pub(crate) fn is_strained(&self) -> bool {
        self.sparing.step() > 1
    }

    /// Takes note of what the link is known to carry: what it has shown until its rate is found, and nothing while that
    /// is lower for another reason.
    pub(super) fn spare_by_rate(&mut self, now: Instant) {
        match self.grant.cause {
            Cause::Beginning if self.shown() > Bitrate::ZERO => self.sparing.on_shown(self.shown()),
            Cause::Beginning
            | Cause::Stall
            | Cause::Silence
            | Cause::LossTrial
            | Cause::Probation => {}
            Cause::Fixed
            | Cause::Growth
            | Cause::Queue
            | Cause::Policer
            | Cause::ForeignQueue
            | Cause::Jitter
            | Cause::Marks => self.sparing.on_rate(self.grant.rate, now),
        }
    }

    /// Returns the pause after a datagram before another may leave that brings no command.
    pub(super) fn sparing_pause(&self, config: &Config) -> Duration {
        config.report_interval * PAUSES[self.sparing.step()] / 2
    }

    /// Returns how long after a report the next one is due while the link brings media.
    ///
    /// Where commands come every 20 ms, each, every second or every fourth finds one due to ride with it.
    pub(crate) fn report_interval(&self, config: &Config) -> Duration {
        match self.sparing.step() {
            0 => config.report_interval,
            _ => self.sparing_pause(config) * 3 / 5,
        }
    }

    /// Returns how many times as far apart as else pings leave.
    pub(super) fn sparing_pings(&self) -> u32 {
        PINGS[self.sparing.step()]
    }

    /// Returns what the peer is to be told of how far apart reports come, if it is time.
    // protocol 4, cadence
    pub(crate) fn take_cadence(&mut self, config: &Config, now: Instant) -> Option<Cadence> {
        let step = self.sparing.step();
        let due = match self.sparing.told {
            None => step > 0,
            Some((at, told)) => told != step || step > 0 && now.since(at) >= TOLD_AGAIN,
        };
        if !due {
            return None;
        }
        self.sparing.told = Some((now, step));
        let interval = self.sparing_pause(config).max(config.report_interval);
        Some(Cadence { link: self.number, interval })
    }
}

/// The peer is told so often: it goes by it for ten times as long.
const TOLD_AGAIN: Duration = Duration::from_millis(100);

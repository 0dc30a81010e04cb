//! Reduced reporting on a low-rate uplink that cannot carry all non-media traffic: pongs, pings,
//! reports, commands.

use tautline_units::{Bitrate, Duration, Instant};

use super::Link;
use super::reduced_reporting::{PAUSES, PINGS};
use crate::config::Config;
use crate::rate::Cause;
use crate::wire::Cadence;

impl Link {
    /// Returns whether reporting is reduced, because the uplink is too slow for all non-media
    /// traffic.
    pub(crate) fn is_reduced(&self) -> bool {
        self.reduced_reporting.step() > 0
    }

    /// Returns whether reduced reporting has reached its second step, because the uplink was too
    /// slow even with the first.
    pub(crate) fn is_strained(&self) -> bool {
        self.reduced_reporting.step() > 1
    }

    /// Reports the link's capacity to reduced reporting: while rate control begins, the measured
    /// lower bound; then the granted rate, except when that is low for another reason than the
    /// link's capacity.
    pub(super) fn reduce_by_rate(&mut self, now: Instant) {
        match self.grant.cause {
            Cause::Beginning if self.shown() > Bitrate::ZERO => {
                self.reduced_reporting.on_shown(self.shown())
            }
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
            | Cause::Marks => self.reduced_reporting.on_rate(self.grant.rate, now),
        }
    }

    /// Returns how long after a datagram the next one that carries no command must wait; zero
    /// without reduced reporting.
    pub(super) fn reduced_pause(&self, config: &Config) -> Duration {
        config.report_interval * PAUSES[self.reduced_reporting.step()] / 2
    }

    /// Returns the report interval while the link receives media.
    ///
    /// It is the configured one without reduced reporting. With it, at a command every 20 ms, a
    /// report is due with each command, every second or every fourth one, by step.
    pub(crate) fn report_interval(&self, config: &Config) -> Duration {
        match self.reduced_reporting.step() {
            0 => config.report_interval,
            _ => self.reduced_pause(config) * 3 / 5,
        }
    }

    /// Returns the factor by which reduced reporting lengthens the ping interval, 1 to 4.
    pub(super) fn reduced_pings(&self) -> u32 {
        PINGS[self.reduced_reporting.step()]
    }

    /// Returns the announcement of our report interval for the peer, and counts it as sent; `None`
    /// unless it is due: after each change of the step and, with reduced reporting, every
    /// [`TOLD_AGAIN`].
    // protocol 4, cadence
    pub(crate) fn take_cadence(&mut self, config: &Config, now: Instant) -> Option<Cadence> {
        let step = self.reduced_reporting.step();
        let due = match self.reduced_reporting.told {
            None => step > 0,
            Some((at, told)) => told != step || step > 0 && now.since(at) >= TOLD_AGAIN,
        };
        if !due {
            return None;
        }
        self.reduced_reporting.told = Some((now, step));
        let interval = self.reduced_pause(config).max(config.report_interval);
        Some(Cadence { link: self.number, interval })
    }
}

/// Interval at which the report interval is announced again while reporting is reduced; the peer
/// uses an announcement for ten times as long.
const TOLD_AGAIN: Duration = Duration::from_millis(100);

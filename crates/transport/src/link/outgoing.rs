//! Outgoing datagrams: content of urgent datagrams, and bookkeeping when a datagram is sent.

use tautline_units::{Duration, Ecn, Instant};

use super::mtu::Pings;
use super::{Entry, Link, Route};
use crate::config::Config;
use crate::counters::{Counters, Discard};
use crate::wire::{PADDING, Ping, Pong, Report, SEALED_HEADER_BYTES, Standing, TAG_BYTES};

/// A padded ping that was written; see [`Link::on_size_probe_sent`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct SizeProbe {
    id: u32,
    bytes: usize,
}

impl Link {
    /// Returns whether the link may have unpaced packets to send: an urgent packet or a pong is
    /// queued, a ping or report is due, or there is a candidate address. While the socket is
    /// blocked only a candidate counts; pongs, pings and reports wait out a pause of reduced
    /// reporting.
    pub(crate) fn is_urgent(&self, now: Instant) -> bool {
        if self.is_blocked() {
            return self.routing.is_moving();
        }
        let held = now < self.reduced_reporting.held_until();
        self.urgent.front().is_some()
            || self.routing.is_moving()
            || !held && (!self.pongs.is_empty() || now >= self.beside_due_at())
    }

    /// Returns when the next ping or report is due; the past if pongs wait on a low-rate uplink. On
    /// such an uplink, not before the pause after the last urgent datagram ends.
    pub(super) fn beside_due_at(&self) -> Instant {
        let due_at = self.probe.due_at().min(self.arrivals.report_due_at());
        let waits = self.is_reduced() && !self.pongs.is_empty();
        let due_at = if waits { Instant::ZERO } else { due_at };
        due_at.max(self.reduced_reporting.held_until())
    }

    /// Records that urgent packets were sent. On a low-rate uplink, less urgent ones then pause.
    pub(crate) fn on_urgent_sent(&mut self, config: &Config, now: Instant) {
        if self.is_reduced() {
            self.reduced_reporting.hold(self.reduced_pause(config), now);
        }
    }

    /// Queues an urgent packet; returns the oldest one if the queue was full and had to drop it.
    pub(crate) fn push_urgent(&mut self, entry: Entry) -> Option<Entry> {
        self.urgent.push(entry)
    }

    /// Appends a pong or a ping for an address that the link may have moved to, and returns its
    /// route; `None` if neither is due.
    // protocol 3, validation of addresses
    pub(crate) fn write_to_candidate(
        &mut self,
        plaintext: &mut Vec<u8>,
        config: &Config,
        now: Instant,
    ) -> Option<Route> {
        let active = self.routing.route();
        let interval = self.ping_interval(config);
        if let Some(at) = self.pongs.iter().position(|pong| pong.route != active) {
            let pong = self.pongs.remove(at)?;
            pong.pong(now).write(plaintext);
            return Some(pong.route);
        }
        let pinged = SEALED_HEADER_BYTES + Ping::BYTES + TAG_BYTES;
        let route = self.routing.ping_candidate(pinged, interval, now)?;
        let id = self.probe.send(route, self.liveness.state(), interval, now);
        Ping { id, sent_at: now }.write(plaintext);
        Some(route)
    }

    /// Appends a ping padded to the size to be probed; `None`, with nothing appended, unless both a
    /// ping and a probe are due on a trusted link with a validated route.
    ///
    /// It travels alone, so that nothing else is lost with it. A stream segments by itself and gets
    /// none. A low-rate uplink gets none either: it would delay everything else.
    // protocol 3, size of datagrams
    pub(crate) fn write_size_probe(
        &mut self,
        plaintext: &mut Vec<u8>,
        now: Instant,
    ) -> Option<SizeProbe> {
        if now < self.probe.due_at()
            || !self.is_trusted()
            || !self.routing.is_shown()
            || self.is_stream()
            || self.is_reduced()
        {
            return None;
        }
        let pings = self.pings();
        let bytes = self.mtu.due(pings, now)?;
        let id = self.probe.send_padded(self.routing.route(), now);
        let start = plaintext.len();
        Ping { id, sent_at: now }.write(plaintext);
        plaintext.resize(start + bytes - SEALED_HEADER_BYTES - TAG_BYTES, PADDING);
        Some(SizeProbe { id, bytes })
    }

    /// Records that a padded ping was sent, which then counts neither as in flight nor, if it is
    /// lost, as a loss.
    pub(crate) fn on_size_probe_sent(&mut self, probe: SizeProbe, now: Instant) {
        self.loss.was_probe(probe.bytes);
        self.in_flight.was_probe();
        self.mtu.on_sent(probe.id, probe.bytes, now);
    }

    /// Takes and appends the link's own report if it is due, and returns whether one was appended.
    /// The next one is due after `pause` at the latest.
    // protocol 4, report
    pub(crate) fn write_report(
        &mut self,
        plaintext: &mut Vec<u8>,
        pause: Duration,
        now: Instant,
    ) -> bool {
        if now < self.arrivals.report_due_at() {
            return false;
        }
        self.arrivals.take_report(self.number, &self.replay, pause, now);
        let report = self.arrivals.report();
        if let Some(report) = report {
            report.write(plaintext);
        }
        report.is_some()
    }

    /// Returns the link's last report; `None` before the first datagram.
    pub(crate) fn report(&self) -> Option<Report> {
        self.arrivals.report()
    }

    /// Returns the maximum length of the packets in one datagram, before sealing.
    pub(crate) fn plaintext_bytes_max(&self) -> usize {
        self.mtu.size() - SEALED_HEADER_BYTES - TAG_BYTES
    }

    /// Appends the unpaced packets that fit into the datagram: pongs, a ping if one is due, with
    /// `standing` after it, and one queued packet. Drops and counts queued packets whose deadline
    /// has passed. With a ping on a link that is not up but whose route is validated, fills the
    /// datagram to 150 bytes. On a standby link that is not up, a ping may put off the next one by
    /// [`IDLE_WAY_PAUSE`].
    ///
    /// `recycle` receives the buffers of urgent packets, sent or expired.
    pub(crate) fn write_urgent(
        &mut self,
        plaintext: &mut Vec<u8>,
        standing: Option<Standing>,
        config: &Config,
        counters: &mut Counters,
        mut recycle: impl FnMut(Vec<u8>),
        now: Instant,
    ) {
        let most = self.plaintext_bytes_max();
        while plaintext.len() + Pong::BYTES <= most
            && let Some(pong) = self.pongs.pop_front()
        {
            pong.pong(now).write(plaintext);
        }
        let pinged = Ping::BYTES + if standing.is_some() { Standing::BYTES } else { 0 };
        let pings = now >= self.probe.due_at() && plaintext.len() + pinged <= most;
        if pings {
            let (route, state) = (self.routing.route(), self.liveness.state());
            let id = self.probe.send(route, state, self.ping_interval(config), now);
            if !self.is_up() && self.choice.stands_by {
                self.probe.put_off(now + IDLE_WAY_PAUSE);
            }
            Ping { id, sent_at: now }.write(plaintext);
            if let Some(standing) = standing {
                standing.write(plaintext);
            }
        }
        while let Some(urgent) = self.urgent.front() {
            let in_time = now <= urgent.deadline;
            if !in_time {
                counters.discard(Discard::UrgentExpired);
            } else if plaintext.len() + urgent.plaintext.len() <= most {
                plaintext.extend_from_slice(&urgent.plaintext);
            } else {
                break;
            }
            if let Some(entry) = self.urgent.pop() {
                recycle(entry.plaintext);
            }
            if in_time {
                // A source packet extends to the end of its datagram.
                break;
            }
        }
        if pings && !self.is_up() && self.routing.is_shown() {
            // Padded so that the peer's answers fit: protocol 3, validation of addresses.
            let padded = plaintext.len().max(150 - SEALED_HEADER_BYTES - TAG_BYTES);
            plaintext.resize(padded, PADDING);
        }
    }

    /// Returns the length of a padding packet, before sealing, while rate control probes: what the
    /// link sends in [`PADDING_TIME`] at the granted rate, in a datagram of 100 bytes or more, up
    /// to the link's maximum.
    pub(crate) fn padding_bytes(&self) -> usize {
        let bytes = (self.grant.rate * PADDING_TIME).get() as usize;
        self.mtu.size().min(bytes).max(100) - SEALED_HEADER_BYTES - TAG_BYTES
    }

    /// Allocates the packet number for a datagram of `bytes` bytes to `route`, and counts it
    /// against the route's anti-amplification limit; `None` if that forbids it.
    // protocol 3, validation of addresses
    pub(crate) fn take_number(&mut self, route: Route, bytes: usize) -> Option<u64> {
        if !self.routing.allows(route, bytes) {
            return None;
        }
        let number = self.next_number;
        self.next_number += 1;
        self.routing.spend(route, bytes);
        Some(number)
    }

    /// Returns the codepoint of datagram `number` to `route`: ECT(1) if rate control responds to
    /// marks and the marking of datagrams applies to this one. A datagram over a stream has none of
    /// its own, and marks on another route than the link's would show nothing.
    // protocol 3, codepoints
    pub(crate) fn ecn(&self, number: u64, route: Route) -> Ecn {
        let may_bear = self.controller.answers_marks()
            && !self.is_stream()
            && route == self.routing.route()
            && self.marking.applies(number);
        if may_bear { Ecn::Ect1 } else { Ecn::NotEct }
    }

    /// Records that a datagram of `bytes` bytes was sent, of any kind.
    pub(crate) fn on_sent(&mut self, bytes: usize, ecn: Ecn, now: Instant) {
        self.loss.on_sent(bytes, now);
        self.in_flight.push(bytes, ecn == Ecn::Ect1, now);
        self.marking.on_sent(ecn);
        self.pacer.on_sent(bytes, now);
        self.control_rate.on_sent(bytes, now);
    }

    /// Records that the datagram of `bytes` bytes just sent is data. Media's pacing and the control
    /// rate count it only while data is limited to its own share; data within the headroom does not
    /// delay media.
    pub(crate) fn on_data_sent(&mut self, bytes: usize, now: Instant) {
        if !self.headroom.takes_share(self.grant.rate) {
            self.pacer.unsend(bytes);
            self.control_rate.unsend(bytes);
        }
        self.reduced_reporting.on_filled(now);
        let number = self.next_number.saturating_sub(1);
        self.headroom.on_sent(number, bytes, self.grant.rate, now);
    }

    /// Records that the datagram just sent carries the media packet `entry`.
    pub(crate) fn on_media_sent(&mut self, entry: Entry, now: Instant) {
        self.media_at = now;
        self.reduced_reporting.on_filled(now);
        let bytes = entry.datagram_bytes().get() as usize;
        self.headroom.on_media(bytes, now);
        self.control_rate.unsend(bytes);
        self.in_flight.carry(entry);
        self.media.sent += 1;
    }

    /// Counts a media packet dropped from the link's queue: its deadline had passed, or its route
    /// is not validated.
    pub(crate) fn on_media_dropped(&mut self) {
        self.media.dropped += 1;
    }

    /// Returns the statistics of the link's small pings, by which padded ones are judged.
    fn pings(&self) -> Pings {
        let rtt = self.rtt.rtt_smoothed().unwrap_or(PONG_MOST);
        let jitter = self.rtt.jitter().unwrap_or_default();
        let pong_timeout = (rtt * 2 + jitter * 4).clamp(PONG_LEAST, PONG_MOST);
        Pings { pong_timeout, answered: self.probe.answered() }
    }
}

/// Minimum ping interval of a standby link that is not up and has left more than 48 pings in a row
/// unanswered.
const IDLE_WAY_PAUSE: Duration = Duration::from_secs(2);
/// Maximum time by which padding delays a media packet.
const PADDING_TIME: Duration = Duration::from_millis(2);
/// Minimum wait for the pong of a padded ping, after which the ping counts as lost.
const PONG_LEAST: Duration = Duration::from_millis(100);
/// Maximum wait for the pong of a padded ping; also the assumed RTT before the first pong.
const PONG_MOST: Duration = Duration::from_millis(1_000);

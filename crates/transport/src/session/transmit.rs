//! Content of the next datagram of one link.

use tautline_units::{Duration, Instant};

use super::active::Active;
use crate::config::Config;
use crate::counters::Discard;
use crate::link::{Entry, Link, Route};
use crate::shared::Shared;
use crate::wire::{Acknowledgement, DeliveryReport, PADDING};

impl Active {
    /// Writes the next urgent datagram of the link at index `place` and returns its route; `None`
    /// if there is none, or if its route may not be sent to.
    pub(super) fn transmit_urgent(
        &mut self,
        place: usize,
        plaintext: &mut Vec<u8>,
        buffer: &mut Vec<u8>,
        shared: &mut Shared,
        now: Instant,
    ) -> Option<Route> {
        plaintext.clear();
        let Self { links, sealer, .. } = self;
        let link = &mut links[place];
        let Shared { config, counters, .. } = shared;
        if let Some(route) = link.write_to_candidate(plaintext, config, now)
            && sealer.seal(link, route, plaintext, buffer, counters, now)
        {
            return Some(route);
        }
        if link.is_blocked() {
            return None;
        }
        plaintext.clear();
        let route = link.route();
        if let Some(probe) = link.write_size_probe(plaintext, now)
            && sealer.seal(link, route, plaintext, buffer, counters, now)
        {
            link.on_size_probe_sent(probe, now);
            return Some(route);
        }
        plaintext.clear();
        self.write_reports(place, plaintext, config, now);
        let link = &self.links[place];
        if link.is_reduced() {
            let most = link.plaintext_bytes_max();
            self.write_acknowledgements(plaintext, most);
        }
        // The initiator sends its standby choice with its pings.
        let standing = self.standing.filter(|_| self.begun_by.is_none());
        let Self { links, sealer, sender, .. } = self;
        let link = &mut links[place];
        let recycle = |buffer| sender.recycle(buffer);
        link.write_urgent(plaintext, standing, config, counters, recycle, now);
        let sealed = sealer.seal(link, route, plaintext, buffer, counters, now);
        if sealed {
            link.on_urgent_sent(config, now);
        }
        sealed.then_some(route)
    }

    /// Writes one datagram, either with acknowledgements of the peer's announcements or, if none is
    /// due, with the due part of an announcement of our channels. The links that can speak carry
    /// such datagrams in turn. `None` if neither is due or no link can speak. On a low-rate uplink,
    /// acknowledgements go into other datagrams instead.
    // protocol 4, announcement
    pub(super) fn transmit_announcement(
        &mut self,
        plaintext: &mut Vec<u8>,
        buffer: &mut Vec<u8>,
        shared: &mut Shared,
        now: Instant,
    ) -> Option<Route> {
        let due = self.sender.announcement_due_at().is_some_and(|at| now >= at);
        if !(due || self.receiver.owes_acknowledgement()) {
            return None;
        }
        let count = self.links.len();
        let mut turns = (1..=count).map(|step| (self.announce_turn + step) % count);
        let speaks = |place: &usize| self.links[*place].can_speak();
        // On a low-rate uplink, acknowledgements ride in datagrams that are sent anyway.
        let mut answers = turns.clone().filter(|place| !self.links[*place].is_reduced());
        let answer = answers.find(speaks).filter(|_| self.receiver.owes_acknowledgement());
        let place = answer.or_else(|| turns.find(speaks).filter(|_| due))?;
        self.announce_turn = place;
        plaintext.clear();
        if answer.is_some() {
            self.write_acknowledgements(plaintext, ACKNOWLEDGEMENTS_MAX);
        }
        if plaintext.is_empty() {
            let rate = self.links[place].rate();
            self.sender.write_announcement(plaintext, rate, now);
        }
        let link = &mut self.links[place];
        let route = link.route();
        let counters = &mut shared.counters;
        self.sealer.seal(link, route, plaintext, buffer, counters, now).then_some(route)
    }

    /// Appends the acknowledgements that are due of the peer's announcements, until `plaintext` has
    /// `most` bytes or has grown by [`ACKNOWLEDGEMENTS_MAX`].
    // protocol 4, announcement
    fn write_acknowledgements(&mut self, plaintext: &mut Vec<u8>, most: usize) {
        let most = most.min(plaintext.len() + ACKNOWLEDGEMENTS_MAX);
        while plaintext.len() + Acknowledgement::BYTES <= most
            && let Some(acknowledgement) = self.receiver.acknowledge()
        {
            acknowledgement.write(plaintext);
        }
    }

    /// Appends the report of the link at index `place` if it is due. With it go, as far as there is
    /// room, an announcement of the report interval, the delivery report, and one other link's
    /// report in turn, in case that link's return direction fails.
    // protocol 4, report
    fn write_reports(
        &mut self,
        place: usize,
        plaintext: &mut Vec<u8>,
        config: &Config,
        now: Instant,
    ) {
        let Self { links, receiver, report_turn, .. } = self;
        let intervals = match links[place].is_standby() {
            true => STANDBY_REPORT_INTERVALS,
            false => IDLE_REPORT_INTERVALS,
        };
        let (count, pause) = (links.len(), config.report_interval * intervals);
        if !links[place].write_report(plaintext, pause, now) {
            return;
        }
        let most = links[place].plaintext_bytes_max();
        if let Some(cadence) = links[place].take_cadence(config, now) {
            cadence.write(plaintext);
        }
        if let Some(report) = receiver.delivery_report()
            && report.delivered + report.lost > 0
            && plaintext.len() + DeliveryReport::BYTES <= most
        {
            report.write(plaintext);
        }
        *report_turn = (*report_turn + 1) % count;
        let other = (place + 1 + *report_turn) % count;
        // A low-rate uplink carries another link's report only if that link's own return direction
        // may have failed.
        let has_room = !links[place].is_reduced() || !links[other].is_trusted();
        if other != place
            && has_room
            && let Some(report) = links[other].report()
            && plaintext.len() + report.bytes_on_wire() <= most
        {
            report.write(plaintext);
        }
    }

    /// Writes a datagram with the next media packet of the link at index `place`, or with padding
    /// if rate control probes and no media may be sent; `None` if neither. Drops packets on the way
    /// that would arrive late, or that the route's anti-amplification limit forbids to send.
    pub(super) fn transmit_media(
        &mut self,
        place: usize,
        buffer: &mut Vec<u8>,
        shared: &mut Shared,
        now: Instant,
    ) -> Option<Route> {
        let Self { links, sealer, sender, .. } = self;
        let clock = links.clock(now);
        let link = &mut links[place];
        let route = link.route();
        let owd = link.owd_out_least(clock, now);
        let counters = &mut shared.counters;
        while link.may_send_next()
            && let Some(entry) = link.pop()
        {
            let in_time = now + owd <= entry.deadline;
            if in_time && sealer.seal(link, route, &entry.plaintext, buffer, counters, now) {
                link.on_media_sent(entry, now);
                return Some(route);
            }
            link.on_media_dropped();
            if !in_time {
                counters.discard(Discard::MediaExpired);
            }
            sender.write_off(entry);
        }
        if !link.is_rate_probing() {
            return None;
        }
        let padding = [PADDING; 1_500];
        let padding = &padding[..link.padding_bytes()];
        sealer.seal(link, route, padding, buffer, counters, now).then_some(route)
    }
}

impl Active {
    /// Writes a datagram with the next data packet on the link whose headroom allows one earliest;
    /// `None` if that is not now, or if no packet that the caps allow fits. Data is then held back
    /// until that time, or for [`BUSY_PAUSE`].
    pub(super) fn transmit_data(
        &mut self,
        buffer: &mut Vec<u8>,
        shared: &mut Shared,
        now: Instant,
    ) -> Option<Route> {
        let Self { links, sealer, sender, .. } = self;
        let (clock, carrying) = (links.clock(now), links.carrying());
        let free = |place: &usize| links[*place].data_free_at();
        let allows = |link: &Link| carrying.allows(link) && !link.is_blocked();
        let places = (0..links.len()).filter(|place| allows(&links[*place]));
        let place = places.min_by_key(free);
        let ready = place.filter(|place| now >= free(place));
        let counters = &mut shared.counters;
        let Some(place) = ready else {
            sender.hold_data(place.map_or(now + BUSY_PAUSE, |place| free(&place)));
            return None;
        };
        let link = &links[place];
        let (route, arrives) = (link.route(), now + link.owd_out_least(clock, now));
        let fits = |entry: &Entry| {
            arrives <= entry.deadline && link.has_room_for_data(entry.datagram_bytes())
        };
        let Some(entry) = sender.pop_data(fits, counters, now) else {
            sender.hold_data(now + BUSY_PAUSE);
            return None;
        };
        let link = &mut links[place];
        let sealed = sealer.seal(link, route, &entry.plaintext, buffer, counters, now);
        if sealed {
            link.on_data_sent(buffer.len(), now);
        }
        sender.recycle(entry.plaintext);
        sealed.then_some(route)
    }
}

/// Interval between checks for headroom while no link may carry data or no packet fits.
const BUSY_PAUSE: Duration = Duration::from_millis(5);
/// Maximum bytes of acknowledgements in one datagram.
const ACKNOWLEDGEMENTS_MAX: usize = 90;
/// Factor on the report interval of a link that receives no media.
const IDLE_REPORT_INTERVALS: u32 = 10;
/// Factor on the report interval of a standby stream, which carries only pings and reports.
const STANDBY_REPORT_INTERVALS: u32 = 100;

//! Observable state of a link: its view and the distribution of its delays.

use tautline_units::{Bitrate, ByteCount, Instant};

use super::Link;
use super::media::Media;
use super::view::{Spreads, View};
use crate::clock::ClockEstimate;

impl Link {
    pub(crate) fn spreads(&self, now: Instant) -> Spreads {
        Spreads {
            number: self.number,
            owd_out: self.rtt.owd_out_spread(now),
            owd_in: self.rtt.owd_in_spread(now),
        }
    }

    /// Returns the link's view; for `budget` see [`View::budget`].
    pub(crate) fn view(&self, budget: Bitrate, clock: Option<ClockEstimate>) -> View {
        View {
            number: self.number,
            route: self.routing.route(),
            state: self.liveness.state(),
            stands_by: self.stands_by(),
            granted: self.grant.rate,
            cause: self.grant.cause,
            queueing: self.queue.standing(),
            budget,
            sent: self.loss.sent(),
            received: self.loss.received(),
            incoming: self.arrivals.rate(),
            rtt: self.rtt.rtt_smoothed(),
            rtt_min: self.rtt.rtt_min(),
            owd_out: self.rtt.owd_out(clock),
            owd_in: self.rtt.owd_in(clock),
            jitter: self.rtt.jitter(),
            loss_out: self.loss.recent(),
            datagrams_missing: self.arrivals.missing(),
            datagram_bytes: ByteCount::new(self.mtu.size() as u64),
            queued: self.pacer.queued(),
            in_flight: self.in_flight.bytes(),
            window: self.grant.window,
            datagrams_sent: self.next_number,
            media: Media {
                given: self.pacer.given(),
                waiting: self.pacer.waiting(),
                open: self.in_flight.media_open(),
                lost: self.media.lost + self.in_flight.media_forgotten(),
                ..self.media
            },
            bytes_sent: self.loss.bytes_sent(),
            datagrams_reported: self.loss.datagrams_reported(),
            datagrams_lost: self.loss.datagrams_lost(),
            datagrams_received: self.arrivals.datagrams(),
            bytes_received: self.arrivals.bytes(),
        }
    }
}

//! What a session knows, as messages for the other end and the console.

use tautline_message::survey::{ClassSurvey, Delays, LinkSurvey, PacketCounts, UnitClass};
use tautline_message::{LinkState, LinkStatus};
use tautline_transport::Units;
use tautline_transport::link::{Media, Percentiles, Spreads, State, View};
use tautline_units::Duration;

use super::Survey;

/// Which way of a link a status tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// What this end sends.
    Out,
    /// What this end receives.
    In,
}

/// One link in short, for the message that goes out many times a second.
pub fn status(view: &View, name: String, way: Way) -> LinkStatus {
    let (received_rate, owd, jitter, loss, packets_received) = match way {
        Way::Out => (view.received, view.owd_out, None, view.loss_out, view.datagrams_reported),
        Way::In => (view.incoming, view.owd_in, view.jitter, view.loss_in, view.datagrams_received),
    };
    LinkStatus {
        link: view.number.get(),
        name,
        state: state(view.state),
        send_rate: view.granted,
        received_rate,
        rtt_ms: view.rtt.map(millis),
        owd_ms: owd.map(millis),
        jitter_ms: jitter.map(millis),
        loss: loss.get() as f32,
        packets_sent: view.datagrams_sent,
        packets_received,
        packets_lost: view.datagrams_lost,
    }
}

impl Survey {
    /// The survey as a message.
    pub fn message(&self) -> tautline_message::Survey {
        let links = self.links.iter().zip(&self.spreads);
        tautline_message::Survey {
            end: self.end,
            links: links.map(|(view, spreads)| link(view, spreads)).collect(),
            classes: self.classes().iter().map(|(class, units)| of_class(*class, units)).collect(),
        }
    }
}

fn link(view: &View, spreads: &Spreads) -> LinkSurvey {
    LinkSurvey {
        link: view.number.get(),
        state: state(view.state),
        datagram_bytes: view.datagram_bytes,
        budget: view.budget,
        granted: view.granted,
        sent: view.sent,
        incoming: view.incoming,
        rtt_ms: view.rtt.map(millis),
        owd_out: spreads.owd_out.map(delays),
        owd_in: spreads.owd_in.map(delays),
        loss_out: view.loss_out.get() as f32,
        loss_in: view.loss_in.get() as f32,
        queued: view.queued,
        in_flight: view.in_flight,
        datagrams_sent: view.datagrams_sent,
        datagrams_received: view.datagrams_received,
        packets: packets(&view.media),
    }
}

fn packets(media: &Media) -> PacketCounts {
    PacketCounts {
        given: media.given,
        again: media.again,
        dropped: media.dropped,
        withdrawn: media.withdrawn,
        sent: media.sent,
        in_time: media.in_time,
        late: media.late,
        lost: media.lost,
    }
}

fn of_class(class: UnitClass, units: &Units) -> ClassSurvey {
    ClassSurvey {
        class,
        offered: units.offered,
        accepted: units.accepted,
        refused_no_link: units.refused_no_link,
        refused_invalid: units.refused_invalid,
        refused_congested: units.refused_congested,
        told_delivered: units.told_delivered,
        told_lost: units.told_lost,
        heard: units.heard,
        delivered: units.delivered,
        repaired: units.repaired,
        missing: units.missing,
        incomplete: units.incomplete,
        late: units.late,
        evicted: units.evicted,
        malformed: units.malformed,
        superseded: units.superseded,
    }
}

fn state(state: State) -> LinkState {
    match state {
        State::Validating => LinkState::Validating,
        State::Up => LinkState::Up,
        State::Silent => LinkState::Silent,
    }
}

fn delays(Percentiles { p50, p95, p99 }: Percentiles) -> Delays {
    Delays { p50: millis(p50), p95: millis(p95), p99: millis(p99) }
}

fn millis(duration: Duration) -> f32 {
    duration.as_secs_f32() * 1e3
}

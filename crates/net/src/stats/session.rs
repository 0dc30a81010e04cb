//! Conversion of a session to its stats.

use tautline_message::LinkState;
use tautline_message::snapshot::{
    ChannelStats, Delays, LinkStats, PacketCounts, RateControl, SessionStats, TrafficCounts,
    UnitCounts,
};
use tautline_transport::link::{Percentiles, Spreads, State, View};
use tautline_transport::relay::LegView;
use tautline_transport::{ChannelNumber, Session};
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use super::history::{History, share};
use crate::channels;
use crate::driver::Drops;

/// Totals from which rates and shares are derived.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    links: Vec<(u8, LinkTotals)>,
    /// For each channel: number of units delivered here, and of units lost or late.
    channels: Vec<(ChannelNumber, u64, u64)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct LinkTotals {
    bytes_sent: u64,
    bytes_received: u64,
    reported: u64,
    lost: u64,
    received: u64,
    missing: u64,
}

impl Totals {
    pub(super) fn of(session: &Session) -> Self {
        let links = session.links().map(|view| (view.number.get(), LinkTotals::of(&view)));
        let channels = session.channels().map(|channel| {
            let units = session.units(channel);
            (channel, units.delivered, units.lost())
        });
        Self { links: links.collect(), channels: channels.collect() }
    }

    fn link(&self, number: u8) -> Option<&LinkTotals> {
        self.links.iter().find(|(link, _)| *link == number).map(|(_, totals)| totals)
    }

    fn channel(&self, number: ChannelNumber) -> Option<(u64, u64)> {
        let found = self.channels.iter().find(|(channel, ..)| *channel == number);
        found.map(|(_, delivered, lost)| (*delivered, *lost))
    }
}

impl LinkTotals {
    fn of(view: &View) -> Self {
        Self {
            bytes_sent: view.bytes_sent.get(),
            bytes_received: view.bytes_received.get(),
            reported: view.datagrams_reported,
            lost: view.datagrams_lost,
            received: view.datagrams_received,
            missing: view.datagrams_missing,
        }
    }
}

/// Returns the stats of `session`, based on its `totals` and those in `history`.
pub(super) fn stats(
    session: &Session,
    legs: &[LegView],
    drops: &Drops,
    name: impl Fn(&View) -> String,
    history: &History<Totals>,
    totals: &Totals,
    now: Instant,
) -> SessionStats {
    let recent = |view: &View| {
        let (before, elapsed) = history.before(RATE_SPAN, now)?;
        let number = view.number.get();
        Some(Recent::between(before.link(number)?, totals.link(number)?, elapsed))
    };
    let links = session.links().zip(session.spreads());
    let links = links.map(|(view, spreads)| {
        link(&view, &spreads, name(&view), recent(&view).unwrap_or_default())
    });
    let mut links: Vec<LinkStats> = links.collect();
    tell_detours(&mut links, &session.links().collect::<Vec<_>>(), legs);
    let channels = session.channels().map(|channel| {
        let late_or_lost = history.before(SHARE_SPAN, now).and_then(|(before, _)| {
            let ((delivered_before, lost_before), (delivered, lost)) =
                (before.channel(channel)?, totals.channel(channel)?);
            share(lost.saturating_sub(lost_before), delivered.saturating_sub(delivered_before))
        });
        let counts: Vec<_> = session.units(channel).iter().collect();
        ChannelStats {
            channel: channel.get(),
            name: channels::name(channel),
            late_or_lost,
            units: UnitCounts::by_name(|name| find(&counts, name)),
        }
    });
    let drops = session.counters().drops().chain(drops.iter());
    SessionStats {
        links,
        channels: channels.take(CHANNELS_MAX).collect(),
        drops: drops.map(|(name, count)| (name.to_owned(), count)).collect(),
    }
}

/// Sets which links a relay carries, and the cost of the detour: the difference between the
/// round-trip time and that of the quickest direct link of the same socket that is up; no cost is
/// set without such a link.
fn tell_detours(links: &mut [LinkStats], views: &[View], legs: &[LegView]) {
    let is_relayed = |view: &View| legs.iter().any(|leg| leg.route.remote == view.route.remote);
    for (link, view) in links.iter_mut().zip(views) {
        link.relayed = is_relayed(view);
        let beside = views.iter().filter(|other| {
            other.route.socket == view.route.socket
                && other.state == State::Up
                && !is_relayed(other)
        });
        let direct = beside.filter_map(|other| other.rtt).min();
        link.detour_ms = match (link.relayed, view.rtt, direct) {
            (true, Some(relayed), Some(direct)) => Some(millis(relayed.saturating_sub(direct))),
            (true | false, ..) => None,
        };
    }
}

/// Rates and losses of a link in the last second.
#[derive(Clone, Copy, Debug)]
struct Recent {
    sent: Bitrate,
    received: Bitrate,
    loss_out: Option<f32>,
    loss_in: Option<f32>,
}

impl Recent {
    fn between(before: &LinkTotals, after: &LinkTotals, elapsed: Duration) -> Self {
        let rate = |before: u64, after: u64| {
            Bitrate::of(ByteCount::new(after.saturating_sub(before)), elapsed)
        };
        Self {
            sent: rate(before.bytes_sent, after.bytes_sent),
            received: rate(before.bytes_received, after.bytes_received),
            loss_out: share(
                after.lost.saturating_sub(before.lost),
                after.reported.saturating_sub(before.reported),
            ),
            loss_in: share(
                after.missing.saturating_sub(before.missing),
                after.received.saturating_sub(before.received),
            ),
        }
    }
}

impl Default for Recent {
    fn default() -> Self {
        Self { sent: Bitrate::ZERO, received: Bitrate::ZERO, loss_out: None, loss_in: None }
    }
}

fn link(view: &View, spreads: &Spreads, name: String, recent: Recent) -> LinkStats {
    let packets: Vec<_> = view.media.iter().collect();
    LinkStats {
        link: view.number.get(),
        name,
        state: state(view.state),
        datagram_bytes: view.datagram_bytes,
        budget: view.budget,
        granted: view.granted,
        sent: recent.sent,
        received: recent.received,
        rtt_ms: view.rtt.map(millis),
        owd_ms: view.owd_in.map(millis),
        jitter_ms: view.jitter.map(millis),
        loss_out: recent.loss_out,
        loss_in: recent.loss_in,
        owd_out: spreads.owd_out.map(delays),
        owd_in: spreads.owd_in.map(delays),
        queued: view.queued,
        in_flight: view.in_flight,
        relayed: false,
        detour_ms: None,
        rate_control: Some(RateControl {
            delivered: view.received,
            queueing_ms: millis(view.queueing),
            cause: view.cause.number(),
        }),
        traffic: TrafficCounts {
            bytes_sent: view.bytes_sent.get(),
            bytes_received: view.bytes_received.get(),
            datagrams_sent: view.datagrams_sent,
            datagrams_reported: view.datagrams_reported,
            datagrams_received: view.datagrams_received,
        },
        packets: PacketCounts::by_name(|name| find(&packets, name)),
    }
}

fn state(state: State) -> LinkState {
    match state {
        State::Validating => LinkState::Validating,
        State::Up => LinkState::Up,
        State::Silent => LinkState::Silent,
    }
}

/// Returns the count of a name, or 0 if it is unknown; a test checks that the transport's names
/// match the message's.
fn find(counts: &[(&'static str, u64)], name: &str) -> u64 {
    counts.iter().find(|(other, _)| *other == name).map_or(0, |(_, count)| *count)
}

fn delays(Percentiles { p50, p95, p99 }: Percentiles) -> Delays {
    Delays { p50: millis(p50), p95: millis(p95), p99: millis(p99) }
}

fn millis(duration: Duration) -> f32 {
    duration.as_secs_f32() * 1e3
}

/// Maximum channels in a snapshot; those with the highest numbers are left out.
const CHANNELS_MAX: usize = 32;
/// Time span of a link's rates and losses: as long as a reader needs.
const RATE_SPAN: Duration = Duration::from_secs(1);
/// Time span of the loss of units, which is rare: over a second its share would be zero or high.
const SHARE_SPAN: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use tautline_transport::Units;
    use tautline_transport::link::Media;

    use super::*;

    #[test]
    fn the_transport_counts_under_the_names_of_the_message() {
        let names = |counts: Vec<(&'static str, u64)>| {
            counts.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        let units = names(UnitCounts::default().iter().collect());
        assert_eq!(units, names(Units::default().iter().collect()));
        let packets = names(PacketCounts::default().iter().collect());
        assert_eq!(packets, names(Media::default().iter().collect()));
    }

    #[test]
    fn rates_and_losses_are_of_what_lies_between_two_totals() {
        let before = LinkTotals {
            bytes_sent: 1_000,
            reported: 80,
            lost: 20,
            received: 10,
            ..LinkTotals::default()
        };
        let after = LinkTotals {
            bytes_sent: 251_000,
            bytes_received: 500,
            reported: 170,
            lost: 30,
            received: 13,
            missing: 1,
        };
        let recent = Recent::between(&before, &after, Duration::from_secs(2));
        assert_eq!(recent.sent, Bitrate::from_mbps(1));
        assert_eq!(recent.received, Bitrate::from_kbps(2));
        assert_eq!((recent.loss_out, recent.loss_in), (Some(0.1), Some(0.25)));
        let quiet = Recent::between(&after, &after, Duration::from_secs(1));
        assert_eq!((quiet.sent, quiet.loss_out), (Bitrate::ZERO, None));
    }

    /// A new session counts from zero again.
    #[test]
    fn totals_that_fall_back_count_as_no_difference() {
        let before = LinkTotals {
            bytes_sent: 9,
            bytes_received: 9,
            reported: 9,
            lost: 9,
            received: 9,
            missing: 9,
        };
        let recent = Recent::between(&before, &LinkTotals::default(), Duration::from_millis(1_000));
        assert_eq!((recent.received, recent.loss_out), (Bitrate::ZERO, None));
    }
}

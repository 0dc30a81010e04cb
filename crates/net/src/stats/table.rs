use std::fmt;

use super::cause::cause_name;
use tautline_message::snapshot::{ChannelStats, Delays, LinkStats};
use tautline_message::{LinkState, Snapshot};
use tautline_units::{Bitrate, ByteCount};

/// A snapshot for people: a table for a terminal at least 120 columns wide, every column with its
/// unit.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a>(pub &'a Snapshot);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.session.is_some() {
            self.write_links(f)?;
            self.write_rates(f)?;
            self.write_packets(f)?;
            self.write_channels(f)?;
        } else {
            writeln!(f, "no session yet: no links and no units")?;
        }
        self.write_values(f)?;
        self.write_drops(f)
    }
}

impl Table<'_> {
    fn write_links(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "            -------- Mbit/s --------   --- one-way delay, ms, 10 s ---")?;
        writeln!(
            f,
            "link state   budget grant  out    in     out p50/p95/p99   in p50/p95/p99    RTT ms  \
             loss out/in %  queue kB  flight kB"
        )?;
        for link in self.0.links() {
            let megabits = |rate: Bitrate| rate.as_f64() / 1e6;
            let kilobytes = |bytes: ByteCount| bytes.get() as f64 / 1e3;
            writeln!(
                f,
                "{:>4} {:<7} {:>6.2} {:>5.1} {:>5.2} {:>5.2}   {:<17} {:<17} {:>6} {:>7}/{:<6} \
                 {:>9.1} {:>10.1}",
                link.link,
                state(link.state),
                megabits(link.budget),
                megabits(link.granted),
                megabits(link.sent),
                megabits(link.received),
                delays(link.owd_out),
                delays(link.owd_in),
                link.rtt_ms.map_or("-".to_owned(), |rtt| format!("{rtt:.1}")),
                percent(link.loss_out),
                percent(link.loss_in),
                kilobytes(link.queued),
                kilobytes(link.in_flight),
            )?;
        }
        Ok(())
    }

    fn write_rates(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.links().iter().all(|link| link.rate_control.is_none()) {
            return Ok(());
        }
        writeln!(f, "\nrate control, Mbit/s")?;
        writeln!(f, "link granted delivered  queueing ms  last change")?;
        for link in self.0.links() {
            let Some(control) = link.rate_control else { continue };
            writeln!(
                f,
                "{:>4} {:>7.2} {:>9.2} {:>12.1}  {}",
                link.link,
                link.granted.as_f64() / 1e6,
                control.delivered.as_f64() / 1e6,
                control.queueing_ms,
                cause_name(control.cause),
            )?;
        }
        Ok(())
    }

    fn write_packets(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nmedia packets out, and datagrams")?;
        writeln!(
            f,
            "link     given    again  dropped withdrawn     sent  in time     late     lost  \
             datagrams sent received  largest B  name"
        )?;
        for link in self.0.links() {
            let packets = &link.packets;
            writeln!(
                f,
                "{:>4} {:>9} {:>8} {:>8} {:>9} {:>8} {:>8} {:>8} {:>8} {:>15} {:>8} {:>10}  {}",
                link.link,
                packets.given,
                packets.again,
                packets.dropped,
                packets.withdrawn,
                packets.sent,
                packets.in_time,
                packets.late,
                packets.lost,
                link.traffic.datagrams_sent,
                link.traffic.datagrams_received,
                link.datagram_bytes.get(),
                named(link),
            )?;
        }
        Ok(())
    }

    fn write_channels(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nunits by channel")?;
        self.0.channels().iter().try_for_each(|channel| write_channel(channel, f))
    }

    fn write_values(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.values().is_empty() {
            writeln!(f, "\nvalues")?;
        }
        self.0.values().iter().try_for_each(|value| {
            let (name, unit) = (printable(&value.name), printable(&value.unit));
            let line = format!("{name:<40} {:>16} {unit}", rounded(value.number));
            writeln!(f, "{}", line.trim_end())
        })
    }

    fn write_drops(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut drops = self.0.drops().filter(|(_, count)| *count > 0).peekable();
        if drops.peek().is_some() {
            writeln!(f, "\ndrops")?;
        }
        drops.try_for_each(|(name, count)| writeln!(f, "{:<40} {count:>16}", printable(name)))
    }
}

fn write_channel(channel: &ChannelStats, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let units = &channel.units;
    let reported = match (units.reported_delivered, units.reported_lost) {
        (0, 0) => String::new(),
        (delivered, lost) => format!("; reported delivered {delivered}, lost {lost}"),
    };
    let refused = [
        ("no link", units.refused_no_link),
        ("invalid", units.refused_invalid),
        ("congested", units.refused_congested),
    ];
    let unsent = match (units.displaced, units.expired) {
        (0, 0) => String::new(),
        (displaced, expired) => format!(", displaced {displaced}, expired {expired}"),
    };
    let lost = [
        ("missing", units.missing),
        ("incomplete", units.incomplete),
        ("late", units.late),
        ("evicted", units.evicted),
        ("malformed", units.malformed),
    ];
    writeln!(
        f,
        "{:<14} out: offered {}, accepted {}, refused {}{unsent}{reported}",
        printable(&channel.name),
        units.offered,
        units.accepted,
        with_reasons(units.refused(), &refused),
    )?;
    let share = channel
        .late_or_lost
        .map_or(String::new(), |share| format!("; late or lost in 10 s {:.2} %", share * 100.0));
    writeln!(
        f,
        "               in:  heard of {}, delivered {} ({} repaired), lost {}, superseded {}{share}",
        units.heard,
        units.delivered,
        units.repaired,
        with_reasons(units.lost(), &lost),
        units.superseded,
    )
}

/// Returns the text of `sum`, followed in brackets by the names and counts that are not 0.
fn with_reasons(sum: u64, counts: &[(&str, u64)]) -> String {
    let some = counts.iter().filter(|(_, count)| *count > 0);
    let words: Vec<_> = some.map(|(what, count)| format!("{what} {count}")).collect();
    if words.is_empty() { sum.to_string() } else { format!("{sum} ({})", words.join(", ")) }
}

/// Returns the display name of a link, and the cost of its relay.
fn named(link: &LinkStats) -> String {
    let name = printable(&link.name);
    match (link.relayed, link.detour_ms) {
        (false, _) => name,
        (true, None) => format!("{name} (relayed)"),
        (true, Some(detour)) => format!("{name} (relayed, +{detour:.1} ms)"),
    }
}

/// Replaces control characters, which could move a terminal's cursor: some names are from the other
/// end.
fn printable(name: &str) -> String {
    name.chars().map(|letter| if letter.is_control() { '\u{FFFD}' } else { letter }).collect()
}

/// Formats a number with at most four decimals, without trailing zeros.
fn rounded(number: f64) -> String {
    let text = format!("{number:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn percent(share: Option<f32>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.2}", share * 100.0))
}

fn state(state: LinkState) -> &'static str {
    match state {
        LinkState::Validating => "validating",
        LinkState::Up => "up",
        LinkState::Silent => "silent",
    }
}

fn delays(delays: Option<Delays>) -> String {
    delays.map_or("-".to_owned(), |Delays { p50, p95, p99 }| format!("{p50:.1}/{p95:.1}/{p99:.1}"))
}

#[cfg(test)]
pub(super) mod tests {
    use tautline_message::snapshot::{
        End, PacketCounts, ProcessStats, RateControl, SessionStats, TrafficCounts, UnitCounts,
        Value,
    };
    use tautline_transport::rate::Cause;
    use tautline_units::Instant;

    use super::*;

    pub(in crate::stats) fn snapshot() -> Snapshot {
        let link = LinkStats {
            link: 0,
            name: "north 1".to_owned(),
            state: LinkState::Up,
            datagram_bytes: ByteCount::new(1_200),
            budget: Bitrate::from_kbps(3_150),
            granted: Bitrate::from_kbps(4_200),
            sent: Bitrate::from_kbps(2_960),
            received: Bitrate::from_kbps(210),
            rtt_ms: Some(48.25),
            owd_ms: Some(22.25),
            jitter_ms: Some(1.5),
            loss_out: Some(0.0125),
            loss_in: Some(0.5),
            owd_out: Some(Delays { p50: 24.0, p95: 61.5, p99: 104.25 }),
            owd_in: Some(Delays { p50: 22.0, p95: 30.0, p99: 41.0 }),
            queued: ByteCount::new(1_500),
            in_flight: ByteCount::new(23_400),
            relayed: false,
            detour_ms: None,
            rate_control: Some(RateControl {
                delivered: Bitrate::from_kbps(2_870),
                queueing_ms: 7.2,
                cause: Cause::Queue.number(),
            }),
            traffic: TrafficCounts {
                bytes_sent: 81_000_000,
                bytes_received: 900_000,
                datagrams_sent: 71_000,
                datagrams_reported: 70_900,
                datagrams_received: 9_000,
            },
            packets: PacketCounts {
                given: 60_012,
                again: 31,
                dropped: 5,
                withdrawn: 7,
                sent: 60_000,
                in_time: 59_200,
                late: 90,
                lost: 700,
            },
        };
        let silent = LinkStats {
            link: 1,
            name: "south \u{1b}[2J".to_owned(),
            state: LinkState::Silent,
            budget: Bitrate::ZERO,
            rtt_ms: None,
            owd_ms: None,
            jitter_ms: None,
            loss_out: None,
            owd_out: None,
            owd_in: None,
            rate_control: None,
            packets: PacketCounts::default(),
            ..link.clone()
        };
        let units = UnitCounts {
            offered: 20,
            accepted: 17,
            refused_no_link: 2,
            refused_congested: 1,
            heard: 500,
            delivered: 490,
            late: 4,
            superseded: 6,
            ..UnitCounts::default()
        };
        let control =
            ChannelStats { channel: 0, name: "control".to_owned(), late_or_lost: None, units };
        let media = ChannelStats {
            channel: 1,
            name: "media".to_owned(),
            late_or_lost: Some(0.008),
            units: UnitCounts { displaced: 2, reported_delivered: 12, ..units },
        };
        let value = |name: &str, number, unit: &str, total| Value {
            name: name.to_owned(),
            number,
            unit: unit.to_owned(),
            total,
        };
        let drops = |name: &str, count| vec![(name.to_owned(), count)];
        Snapshot {
            end: End::Vehicle,
            taken_at: Instant::from_millis(5),
            session: Some(SessionStats {
                links: vec![link, silent],
                channels: vec![control, media],
                drops: drops("media_expired", 5),
            }),
            process: Some(ProcessStats {
                values: vec![
                    value("encode p99", 0.0029, "s", false),
                    value("video budget", 3_150_000.0, "bit/s", false),
                    value("slices sent", 5_400.0, "", true),
                ],
                drops: drops("camera: picture skipped", 0),
            }),
        }
    }

    #[test]
    fn the_table_has_every_count_under_its_name() {
        insta::assert_snapshot!(Table(&snapshot()).to_string());
    }

    #[test]
    fn a_relayed_link_says_what_the_detour_costs() {
        let mut snapshot = snapshot();
        let links = &mut snapshot.session.as_mut().unwrap().links;
        links[0].relayed = true;
        (links[1].relayed, links[1].detour_ms) = (true, Some(12.25));
        let table = Table(&snapshot).to_string();
        assert!(table.contains("north 1 (relayed)\n"), "{table}");
        assert!(table.contains("(relayed, +12.2 ms)\n"), "{table}");
    }

    #[test]
    fn an_end_without_links_or_a_session_has_a_table_too() {
        let mut bare = snapshot();
        bare.session = Some(SessionStats::default());
        bare.process = None;
        assert_eq!(Table(&bare).to_string().lines().count(), 7);
        bare.session = None;
        assert_eq!(Table(&bare).to_string(), "no session yet: no links and no units\n");
    }
}

use std::fmt;

use tautline_message::survey::{ClassSurvey, Delays, UnitClass};
use tautline_message::{LinkState, Survey};
use tautline_units::{Bitrate, ByteCount};

/// A survey for people: a table for a terminal at least 120 columns wide, every column with its
/// unit.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a>(pub &'a Survey);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_links(f)?;
        self.write_packets(f)?;
        self.write_classes(f)
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
        for link in &self.0.links {
            let megabits = |rate: Bitrate| rate.as_f64() / 1e6;
            let kilobytes = |bytes: ByteCount| bytes.get() as f64 / 1e3;
            writeln!(
                f,
                "{:>4} {:<7} {:>6.2} {:>5.1} {:>5.2} {:>5.2}   {:<17} {:<17} {:>6} {:>7.2}/{:<6.2} \
                 {:>9.1} {:>10.1}",
                link.link,
                state(link.state),
                megabits(link.budget),
                megabits(link.granted),
                megabits(link.sent),
                megabits(link.incoming),
                delays(link.owd_out),
                delays(link.owd_in),
                link.rtt_ms.map_or("-".to_owned(), |rtt| format!("{rtt:.1}")),
                link.loss_out * 100.0,
                link.loss_in * 100.0,
                kilobytes(link.queued),
                kilobytes(link.in_flight),
            )?;
        }
        Ok(())
    }

    fn write_packets(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nmedia packets out, and datagrams")?;
        writeln!(
            f,
            "link     given    again  dropped withdrawn     sent  in time     late     lost  \
             datagrams sent received  largest B"
        )?;
        for link in &self.0.links {
            let packets = &link.packets;
            writeln!(
                f,
                "{:>4} {:>9} {:>8} {:>8} {:>9} {:>8} {:>8} {:>8} {:>8} {:>15} {:>8} {:>10}",
                link.link,
                packets.given,
                packets.again,
                packets.dropped,
                packets.withdrawn,
                packets.sent,
                packets.in_time,
                packets.late,
                packets.lost,
                link.datagrams_sent,
                link.datagrams_received,
                link.datagram_bytes.get(),
            )?;
        }
        Ok(())
    }

    fn write_classes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nunits by class")?;
        self.0.classes.iter().try_for_each(|class| write_class(class, f))
    }
}

fn write_class(units: &ClassSurvey, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    // The peer tells of media only.
    let (name, told) = match units.class {
        UnitClass::Control => ("control", String::new()),
        UnitClass::Media => (
            "media",
            format!("; peer tells delivered {}, lost {}", units.told_delivered, units.told_lost),
        ),
    };
    let refused = [
        ("no link", units.refused_no_link),
        ("invalid", units.refused_invalid),
        ("congested", units.refused_congested),
    ];
    let lost = [
        ("missing", units.missing),
        ("incomplete", units.incomplete),
        ("late", units.late),
        ("evicted", units.evicted),
        ("malformed", units.malformed),
    ];
    writeln!(
        f,
        "{name:<8} out: offered {}, accepted {}, refused {}{told}",
        units.offered,
        units.accepted,
        with_reasons(&refused),
    )?;
    writeln!(
        f,
        "         in:  heard of {}, delivered {} ({} repaired), lost {}, superseded {}",
        units.heard,
        units.delivered,
        units.repaired,
        with_reasons(&lost),
        units.superseded,
    )
}

/// The sum of all, and the reasons that there are.
fn with_reasons(counts: &[(&str, u64)]) -> String {
    let sum =
        counts.iter().map(|(_, count)| count).fold(0, |sum: u64, one| sum.saturating_add(*one));
    let some = counts.iter().filter(|(_, count)| *count > 0);
    let words: Vec<_> = some.map(|(what, count)| format!("{what} {count}")).collect();
    if words.is_empty() { sum.to_string() } else { format!("{sum} ({})", words.join(", ")) }
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
mod tests {
    use tautline_message::survey::{End, LinkSurvey, PacketCounts};

    use super::*;

    fn survey() -> Survey {
        let link = LinkSurvey {
            link: 0,
            state: LinkState::Up,
            datagram_bytes: ByteCount::new(1_200),
            budget: Bitrate::from_kbps(3_150),
            granted: Bitrate::from_kbps(4_200),
            sent: Bitrate::from_kbps(2_960),
            incoming: Bitrate::from_kbps(210),
            rtt_ms: Some(48.25),
            owd_out: Some(Delays { p50: 24.0, p95: 61.5, p99: 104.25 }),
            owd_in: Some(Delays { p50: 22.0, p95: 30.0, p99: 41.0 }),
            loss_out: 0.0125,
            loss_in: 0.5,
            queued: ByteCount::new(1_500),
            in_flight: ByteCount::new(23_400),
            datagrams_sent: 71_000,
            datagrams_received: 9_000,
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
        let silent = LinkSurvey {
            link: 1,
            state: LinkState::Silent,
            rtt_ms: None,
            owd_out: None,
            owd_in: None,
            budget: Bitrate::ZERO,
            packets: PacketCounts::default(),
            ..link.clone()
        };
        let control = ClassSurvey {
            class: UnitClass::Control,
            offered: 20,
            accepted: 17,
            refused_no_link: 2,
            refused_invalid: 0,
            refused_congested: 1,
            told_delivered: 0,
            told_lost: 0,
            heard: 500,
            delivered: 490,
            repaired: 0,
            missing: 0,
            incomplete: 0,
            late: 4,
            evicted: 0,
            malformed: 0,
            superseded: 6,
        };
        let media = ClassSurvey { class: UnitClass::Media, told_delivered: 12, ..control };
        Survey { end: End::Vehicle, links: vec![link, silent], classes: vec![control, media] }
    }

    #[test]
    fn the_table_has_every_count_under_its_name() {
        insta::assert_snapshot!(Table(&survey()).to_string());
    }

    #[test]
    fn a_session_without_links_has_a_table_too() {
        let text = Table(&Survey { links: Vec::new(), ..survey() }).to_string();
        assert_eq!(text.lines().count(), 11, "{text}");
    }
}

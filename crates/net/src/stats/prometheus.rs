//! Rendering of a snapshot as metrics.

use tautline_message::snapshot::{Delays, LinkStats, Value};
use tautline_message::{LinkState, Snapshot};

use super::cause::cause_name;
use crate::metrics::{Labels, Page, Unit};

/// Adds the complete `snapshot` to `page`: links by number, channels by name, values and drops by
/// name.
pub fn add_to(page: &mut Page, snapshot: &Snapshot) {
    add_links(page, snapshot.links());
    add_delays(page, snapshot.links());
    add_totals(page, snapshot);
    for value in snapshot.values() {
        add_value(page, value);
    }
    let drops = snapshot.drops().map(|(name, count)| (Labels::of("name", name), count));
    page.counters("drops", None, "Drops by name", drops);
}

fn add_links(page: &mut Page, links: &[LinkStats]) {
    let mut gauges = |name, unit, help, value: fn(&LinkStats) -> Option<f64>| {
        let known = links.iter().filter_map(|link| Some((number(link), value(link)?)));
        page.gauges(name, unit, help, known);
    };
    let seconds = |millis: f32| f64::from(millis) / 1e3;
    let bits = Some(Unit::Other("bits_per_second".to_owned()));
    gauges("link_up", None, "1 while the link carries packets", |link| {
        Some(f64::from(link.state == LinkState::Up))
    });
    gauges("link_budget", bits.clone(), "Rate available to media", |l| Some(l.budget.as_f64()));
    gauges("link_grant", bits.clone(), "Rate granted by rate control", |l| {
        Some(l.granted.as_f64())
    });
    let delivered = "Rate that arrived at the other end, by its last report";
    gauges("link_delivered", bits, delivered, |link| Some(link.rate_control?.delivered.as_f64()));
    let ratio = Some(Unit::Other("ratio".to_owned()));
    gauges(
        "link_loss_out",
        ratio.clone(),
        "Share lost of the packets sent in the last second",
        |link| link.loss_out.map(f64::from),
    );
    gauges(
        "link_loss_in",
        ratio,
        "Share lost of the packets that the other end sent in the last second",
        |link| link.loss_in.map(f64::from),
    );
    gauges("link_relayed", None, "1 if a relay carries the link", |link| {
        link.relayed.then_some(1.0)
    });
    let detour = "Round trip that the relay adds to a direct link";
    gauges("link_detour", Some(Unit::Seconds), detour, |link| {
        link.detour_ms.map(|millis| f64::from(millis) / 1e3)
    });
    gauges("link_queue", Some(Unit::Bytes), "Media waiting to be sent", |link| {
        Some(link.queued.get() as f64)
    });
    gauges("link_in_flight", Some(Unit::Bytes), "Sent and not reported yet", |link| {
        Some(link.in_flight.get() as f64)
    });
    gauges("link_datagram", Some(Unit::Bytes), "Largest datagram of the link", |link| {
        Some(link.datagram_bytes.get() as f64)
    });
    let delays = |delay: fn(&LinkStats) -> Option<f32>| {
        links.iter().filter_map(move |link| Some((number(link), seconds(delay(link)?))))
    };
    let rtt = "Round-trip time, smoothed";
    page.gauges("link_rtt_smoothed", Some(Unit::Seconds), rtt, delays(|link| link.rtt_ms));
    let owd = "One-way delay towards this end, smoothed";
    page.gauges("link_owd_smoothed", Some(Unit::Seconds), owd, delays(|link| link.owd_ms));
    let queueing = "Queueing delay of the link, measured on sent packets";
    page.gauges(
        "link_queueing",
        Some(Unit::Seconds),
        queueing,
        delays(|link| Some(link.rate_control?.queueing_ms)),
    );
    let jitter = "Jitter of received packets (RFC 3550)";
    page.gauges("link_jitter", Some(Unit::Seconds), jitter, delays(|link| link.jitter_ms));
    let causes = links.iter().filter_map(|link| {
        Some((number(link).and("cause", cause_name(link.rate_control?.cause)), 1.0))
    });
    let cause = "1, labelled with the cause of the last change of the grant";
    page.gauges("link_grant_cause", None, cause, causes);
    let names = links.iter().map(|link| (number(link).and("name", &link.name), 1.0));
    page.gauges("link_info", None, "1, labelled with the link's name", names);
}

fn add_delays(page: &mut Page, links: &[LinkStats]) {
    let mut delays = Vec::new();
    for link in links {
        for (way, spread) in [("out", link.owd_out), ("in", link.owd_in)] {
            let Some(Delays { p50, p95, p99 }) = spread else { continue };
            for (quantile, delay) in [("0.5", p50), ("0.95", p95), ("0.99", p99)] {
                let labels = number(link).and("way", way).and("quantile", quantile);
                delays.push((labels, f64::from(delay) / 1e3));
            }
        }
    }
    page.gauges("link_owd", Some(Unit::Seconds), "One-way delay over ten seconds", delays);
}

fn add_totals(page: &mut Page, snapshot: &Snapshot) {
    let mut datagrams = Vec::new();
    let mut bytes = Vec::new();
    let mut packets = Vec::new();
    for link in snapshot.links() {
        for (name, count) in link.traffic.iter() {
            let (of, kind) = match name.split_once('_') {
                Some(("bytes", what)) => (&mut bytes, what),
                Some((_, what)) => (&mut datagrams, what),
                None => continue,
            };
            of.push((number(link).and("what", kind), count));
        }
        packets.extend(
            link.packets.iter().map(|(name, count)| (number(link).and("what", name), count)),
        );
    }
    page.counters("link_datagrams", None, "Datagrams by link", datagrams);
    page.counters("link", Some(Unit::Bytes), "Bytes by link, headers included", bytes);
    page.counters("link_media_packets", None, "Media packets by outcome", packets);
    let units = snapshot.channels().iter().flat_map(|channel| {
        let labels = |what| Labels::of("channel", &channel.name).and("what", what);
        channel.units.iter().map(move |(name, count)| (labels(name), count))
    });
    page.counters("channel_units", None, "Units by channel and outcome", units);
}

/// Adds the value as a metric of its own, a counter if it is a total, otherwise a gauge: its name
/// in snake case, then its unit. A name without a letter is left out.
fn add_value(page: &mut Page, value: &Value) {
    let name = snake(&value.name);
    if name.is_empty() {
        return;
    }
    // Characters that could be read as a line break or an escape are replaced.
    let help = value.name.replace(|c: char| c.is_control() || c == '\\', " ");
    if value.total {
        page.counter(&name, unit(&value.unit), &help, value.number as u64);
    } else {
        page.gauge(&name, unit(&value.unit), &help, value.number);
    }
}

fn number(link: &LinkStats) -> Labels {
    Labels::of("link", &link.link.to_string())
}

fn unit(unit: &str) -> Option<Unit> {
    let words = match unit {
        "" => return None,
        "s" => return Some(Unit::Seconds),
        "B" => return Some(Unit::Bytes),
        "V" => return Some(Unit::Volts),
        "A" => return Some(Unit::Amperes),
        "°C" => return Some(Unit::Celsius),
        "m" => "metres".to_owned(),
        "m/s" => "metres_per_second".to_owned(),
        "m/s²" => "metres_per_second_squared".to_owned(),
        "bit/s" => "bits_per_second".to_owned(),
        "/s" => "per_second".to_owned(),
        "%" => "percent".to_owned(),
        "°" => "degrees".to_owned(),
        other => snake(other),
    };
    (!words.is_empty()).then_some(Unit::Other(words))
}

/// Converts to lower-case letters, digits and single underscores, beginning with a letter: the
/// characters valid in a metric's name.
fn snake(words: &str) -> String {
    let mut snake = String::with_capacity(words.len());
    for character in words.chars() {
        match character.to_ascii_lowercase() {
            letter @ 'a'..='z' => snake.push(letter),
            digit @ '0'..='9' if !snake.is_empty() => snake.push(digit),
            _ if snake.is_empty() || snake.ends_with('_') => {}
            _ => snake.push('_'),
        }
    }
    snake.truncate(snake.trim_end_matches('_').len());
    snake
}

#[cfg(test)]
mod tests {
    use tautline_message::snapshot::{ChannelStats, ProcessStats, SessionStats, UnitCounts};

    use super::*;
    use crate::stats::table::tests::snapshot;

    fn page(snapshot: &Snapshot) -> String {
        let mut page = Page::new("tautline_vehicle");
        add_to(&mut page, snapshot);
        page.finish()
    }

    #[test]
    fn metrics_follow_the_conventions() {
        insta::assert_snapshot!(page(&snapshot()));
    }

    #[test]
    fn names_of_strangers_cannot_break_out_of_a_label() {
        let evil = "a\"} 1\nevil{x=\"\\";
        let mut snapshot = snapshot();
        let session = snapshot.session.as_mut().unwrap();
        session.links[0].name = evil.to_owned();
        session.drops = vec![(evil.to_owned(), 7)];
        session.channels[0].name = evil.to_owned();
        let value = Value { name: evil.into(), number: 2.0, unit: evil.into(), total: false };
        snapshot.process = Some(ProcessStats { values: vec![value], drops: Vec::new() });
        let text = page(&snapshot);
        let escaped = r#"{name="a\"} 1\nevil{x=\"\\"} 7"#;
        assert!(text.contains(&format!("tautline_vehicle_drops_total{escaped}\n")), "{text}");
        assert!(text.lines().all(|line| line.starts_with("# ") || line.starts_with("tautline_")));
        assert!(!text.contains("\nevil"), "{text}");
        assert!(text.contains("tautline_vehicle_a_1_evil_x_a_1_evil_x 2.0\n"), "{text}");
    }

    #[test]
    fn invalid_and_duplicate_metric_names_are_omitted() {
        let value = |name: &str, number| Value {
            name: name.into(),
            number,
            unit: String::new(),
            total: false,
        };
        let values = vec![value("cones hit", 1.0), value("Cones-hit", 2.0), value("7 °", 3.0)];
        let process = ProcessStats { values, drops: Vec::new() };
        let channel = ChannelStats {
            channel: 0,
            name: "control".into(),
            late_or_lost: None,
            units: UnitCounts::default(),
        };
        let session = SessionStats { channels: vec![channel], ..SessionStats::default() };
        let text = page(&Snapshot {
            process: Some(process),
            session: Some(session),
            ..Snapshot::empty(Default::default())
        });
        assert!(text.contains("tautline_vehicle_cones_hit 1.0\n"), "{text}");
        assert_eq!(text.matches("cones_hit").count(), 3, "{text}");
        assert!(!text.contains(" 3.0"), "{text}");
    }
}

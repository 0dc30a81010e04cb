//! A session's links and classes as last seen: a table for people, metrics for Prometheus.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tautline_transport::link::{Percentiles, Spreads, State, View};
use tautline_transport::{Class, Session, Units};

use crate::metrics::Page;

/// What a session knew of its links and classes at one time.
///
/// Its `Display` is a table for a terminal at least 120 columns wide, every column with its unit.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Every link, in order of their numbers.
    pub links: Vec<View>,
    /// How their delays were spread, in the same order.
    pub spreads: Vec<Spreads>,
    /// Both classes, and what became of their units.
    pub classes: [(Class, Units); Class::ALL.len()],
}

/// Where the newest survey stands; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Latest(Arc<Mutex<Option<Survey>>>);

impl Latest {
    /// Takes a survey of `session`.
    pub fn take(&self, session: &Session) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Survey::of(session));
    }

    /// The newest survey; `None` before the first session.
    pub fn get(&self) -> Option<Survey> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Survey {
    /// Looks at `session`.
    pub fn of(session: &Session) -> Self {
        let classes = Class::ALL.map(|class| (class, session.units(class)));
        Self { links: session.links().collect(), spreads: session.spreads().collect(), classes }
    }

    /// Adds every link by its number and every class by its name to `page`.
    pub fn add_to(&self, page: &mut Page) {
        let each = |value: fn(&View) -> Option<f64>| {
            let known = self.links.iter().filter_map(move |l| Some((l.number.get(), value(l)?)));
            known.collect::<Vec<_>>()
        };
        let link = |page: &mut Page, name: &str, help: &str, value: fn(&View) -> Option<f64>| {
            page.gauges(name, help, "link", each(value));
        };
        link(page, "link_up", "1 while the link carries packets", |link| {
            Some(f64::from(u8::from(link.state == State::Up)))
        });
        link(page, "link_budget_bits_per_second", "Counted on for media", |link| {
            Some(link.budget.as_f64())
        });
        link(page, "link_grant_bits_per_second", "Granted by rate control", |link| {
            Some(link.granted.as_f64())
        });
        link(page, "link_out_bits_per_second", "Sent lately", |link| Some(link.sent.as_f64()));
        link(page, "link_reported_bits_per_second", "Arriving at the peer", |link| {
            Some(link.received.as_f64())
        });
        link(page, "link_in_bits_per_second", "Arriving here", |l| Some(l.incoming.as_f64()));
        link(page, "link_rtt_smoothed_seconds", "Round-trip time, smoothed", |link| {
            link.rtt.map(|rtt| rtt.as_secs_f64())
        });
        link(page, "link_loss_out_ratio", "Lost of what was sent in the last second", |link| {
            Some(link.loss_out.get())
        });
        link(page, "link_loss_in_ratio", "Lost of what the peer has sent", |link| {
            Some(link.loss_in.get())
        });
        link(page, "link_queue_bytes", "Media that waits here", |l| Some(l.queued.get() as f64));
        link(page, "link_in_flight_bytes", "Sent and not yet reported", |link| {
            Some(link.in_flight.get() as f64)
        });
        link(page, "link_window_bytes", "Most that may be in flight", |link| {
            link.window.map(|window| window.get() as f64)
        });
        link(page, "link_datagram_bytes", "Largest datagram", |link| {
            Some(link.datagram_bytes.get() as f64)
        });
        self.add_delays(page);
        self.add_totals(page);
    }

    fn add_delays(&self, page: &mut Page) {
        let mut delays = Vec::new();
        for link in &self.spreads {
            let number = link.number.get();
            for (way, spread) in [("out", link.owd_out), ("in", link.owd_in)] {
                let Some(Percentiles { p50, p95, p99 }) = spread else { continue };
                for (quantile, delay) in [("0.5", p50), ("0.95", p95), ("0.99", p99)] {
                    let labels = format!("link=\"{number}\",way=\"{way}\",quantile=\"{quantile}\"");
                    delays.push((labels, delay.as_secs_f64()));
                }
            }
        }
        page.labelled_gauges("link_owd_seconds", "One-way delay over ten seconds", delays);
    }

    fn add_totals(&self, page: &mut Page) {
        let mut datagrams = Vec::new();
        let mut bytes = Vec::new();
        let mut packets = Vec::new();
        for link in &self.links {
            let number = link.number.get();
            let labels = |what: &str| format!("link=\"{number}\",what=\"{what}\"");
            datagrams.push((labels("sent"), link.datagrams_sent));
            datagrams.push((labels("reported"), link.datagrams_reported));
            datagrams.push((labels("received"), link.datagrams_received));
            bytes.push((labels("sent"), link.bytes_sent.get()));
            bytes.push((labels("received"), link.bytes_received.get()));
            packets.extend(link.media.iter().map(|(what, count)| (labels(what), count)));
        }
        page.labelled_counters("link_datagrams_total", "Datagrams by link", datagrams);
        page.labelled_counters("link_bytes_total", "Bytes by link, headers included", bytes);
        page.labelled_counters("link_media_packets_total", "What became of media", packets);
        let units = self.classes.iter().flat_map(|(class, units)| {
            let labels = move |what| format!("class=\"{}\",what=\"{what}\"", name(*class));
            units.iter().map(move |(what, count)| (labels(what), count))
        });
        page.labelled_counters("class_units_total", "Units by class, what became of them", units);
    }
}

impl fmt::Display for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_links(f)?;
        self.write_packets(f)?;
        self.write_classes(f)
    }
}

impl Survey {
    fn write_links(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "            -------- Mbit/s --------   --- one-way delay, ms, 10 s ---")?;
        writeln!(
            f,
            "link state   budget grant  out    in     out p50/p95/p99   in p50/p95/p99    RTT ms  \
             loss out/in %  queue kB  flight kB"
        )?;
        for (link, delays) in self.links.iter().zip(&self.spreads) {
            let megabits = |rate: tautline_units::Bitrate| rate.as_f64() / 1e6;
            let kilobytes = |bytes: tautline_units::ByteCount| bytes.get() as f64 / 1e3;
            writeln!(
                f,
                "{:>4} {:<7} {:>6.2} {:>5.1} {:>5.2} {:>5.2}   {:<17} {:<17} {:>6} {:>7.2}/{:<6.2} \
                 {:>9.1} {:>10.1}",
                link.number.get(),
                state(link.state),
                megabits(link.budget),
                megabits(link.granted),
                megabits(link.sent),
                megabits(link.incoming),
                spread(delays.owd_out),
                spread(delays.owd_in),
                link.rtt.map_or("-".to_owned(), |rtt| format!("{:.1}", millis(rtt))),
                link.loss_out.get() * 100.0,
                link.loss_in.get() * 100.0,
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
             datagrams sent received"
        )?;
        for link in &self.links {
            let media = &link.media;
            writeln!(
                f,
                "{:>4} {:>9} {:>8} {:>8} {:>9} {:>8} {:>8} {:>8} {:>8} {:>15} {:>8}",
                link.number.get(),
                media.given,
                media.again,
                media.dropped,
                media.withdrawn,
                media.sent,
                media.in_time,
                media.late,
                media.lost,
                link.datagrams_sent,
                link.datagrams_received,
            )?;
        }
        Ok(())
    }

    fn write_classes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nunits by class")?;
        for (class, units) in &self.classes {
            let counts = |of: &[(&str, u64)]| {
                let some = of.iter().filter(|(_, count)| *count > 0);
                let words: Vec<_> = some.map(|(what, count)| format!("{what} {count}")).collect();
                if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
            };
            let refused = counts(&[
                ("no link", units.refused_no_link),
                ("invalid", units.refused_invalid),
                ("congested", units.refused_congested),
            ]);
            // The peer tells of media only.
            let told = match class {
                Class::Media => format!(
                    "; peer tells delivered {}, lost {}",
                    units.told_delivered, units.told_lost
                ),
                Class::Control => String::new(),
            };
            writeln!(
                f,
                "{:<8} out: offered {}, accepted {}, refused {}{refused}{told}",
                name(*class),
                units.offered,
                units.accepted,
                units.refused(),
            )?;
            let lost = counts(&[
                ("missing", units.missing),
                ("incomplete", units.incomplete),
                ("late", units.late),
                ("evicted", units.evicted),
                ("malformed", units.malformed),
            ]);
            writeln!(
                f,
                "         in:  heard of {}, delivered {} ({} repaired), lost {}{lost}, superseded {}",
                units.heard,
                units.delivered,
                units.repaired,
                units.lost(),
                units.superseded,
            )?;
        }
        Ok(())
    }
}

fn name(class: Class) -> &'static str {
    match class {
        Class::Control => "control",
        Class::Media => "media",
    }
}

fn state(state: State) -> &'static str {
    match state {
        State::Validating => "validating",
        State::Up => "up",
        State::Silent => "silent",
    }
}

fn spread(spread: Option<Percentiles>) -> String {
    spread.map_or("-".to_owned(), |Percentiles { p50, p95, p99 }| {
        format!("{:.1}/{:.1}/{:.1}", millis(p50), millis(p95), millis(p99))
    })
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

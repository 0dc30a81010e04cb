//! A session's links and classes as last seen: a table for people, metrics for Prometheus.

mod message;
mod table;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tautline_message::survey::{End, UnitClass};
use tautline_transport::link::{Percentiles, Spreads, State, View};
use tautline_transport::{ChannelNumber, Session, Units};

pub use message::{Way, status};
pub use table::Table;

use crate::metrics::Page;

/// What a session knew of its links and classes at one time.
///
/// Its `Display` is a [`Table`].
#[derive(Clone, Debug)]
pub struct Survey {
    /// Whose session it is.
    pub end: End,
    /// Every link, in order of their numbers.
    pub links: Vec<View>,
    /// How their delays were spread, in the same order.
    pub spreads: Vec<Spreads>,
    /// Every channel that was used, and what became of its units.
    pub channels: Vec<(ChannelNumber, Units)>,
}

/// Where the newest survey of one end stands; clones share it.
#[derive(Clone, Debug)]
pub struct Latest {
    end: End,
    survey: Arc<Mutex<Option<Survey>>>,
}

impl Latest {
    /// Nothing seen yet by `end`.
    pub fn of(end: End) -> Self {
        Self { end, survey: Arc::default() }
    }

    /// Takes a survey of `session`, and gives it.
    pub fn take(&self, session: &Session) -> Survey {
        let survey = Survey::of(session, self.end);
        *self.survey.lock().unwrap_or_else(PoisonError::into_inner) = Some(survey.clone());
        survey
    }

    /// The newest survey; `None` before the first session.
    pub fn get(&self) -> Option<Survey> {
        self.survey.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Display for Latest {
    /// The newest survey's table, or that there is none yet.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            Some(survey) => survey.fmt(f),
            None => writeln!(f, "no session yet: no links and no units"),
        }
    }
}

impl Survey {
    /// Looks at `session`, of `end`.
    pub fn of(session: &Session, end: End) -> Self {
        let channels = session.channels().map(|channel| (channel, session.units(channel)));
        let channels = channels.collect();
        let (links, spreads) = (session.links().collect(), session.spreads().collect());
        Self { end, links, spreads, channels }
    }

    /// Units of `channel`.
    pub fn units(&self, channel: ChannelNumber) -> Units {
        let found = self.channels.iter().find(|(number, _)| *number == channel);
        found.map(|(_, units)| units.clone()).unwrap_or_default()
    }

    /// Units of media, and those of all other channels together.
    fn classes(&self) -> [(UnitClass, Units); 2] {
        let mut control = Units::default();
        let others = self.channels.iter().filter(|(channel, _)| *channel != ChannelNumber::MEDIA);
        others.for_each(|(_, units)| control.add(units));
        [(UnitClass::Control, control), (UnitClass::Media, self.units(ChannelNumber::MEDIA))]
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
        let classes = self.classes();
        let units = classes.iter().flat_map(|(class, units)| {
            let labels = move |what| format!("class=\"{}\",what=\"{what}\"", name(*class));
            units.iter().map(move |(what, count)| (labels(what), count))
        });
        page.labelled_counters("class_units_total", "Units by class, what became of them", units);
    }
}

impl fmt::Display for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Table(&self.message()).fmt(f)
    }
}

fn name(class: UnitClass) -> &'static str {
    match class {
        UnitClass::Control => "control",
        UnitClass::Media => "media",
    }
}

//! Records of this process for the guard's black box: who drives, the state of the links, and the
//! software.

use serde_json::{Value, json};
use tautline_guard::frame::{About, Fact};
use tautline_message::snapshot::{Delays, LinkStats};
use tautline_transport::crypto::PublicKey;
use tautline_units::Instant;

use crate::config::Config;
use crate::telemetry::Reporter;

/// Source of the records for the black box, three kinds in turn, each once per second.
#[derive(Debug)]
pub(crate) struct Facts {
    system: Value,
    turn: u64,
}

impl Facts {
    /// Creates the source of the records of a vehicle with these settings and this key.
    pub(crate) fn new(config: &Config, key: PublicKey) -> Self {
        let system = json!({
            "name": config.name,
            "key": key.to_string(),
            "software": SOFTWARE,
            "encoder": config.encoder.to_string(),
            "loss_recovery": config.loss_recovery.to_string(),
        });
        Self { system, turn: 0 }
    }

    /// Returns the record that is due at this call, if one is; call it 20 times per second.
    pub(crate) fn next(
        &mut self,
        config: &Config,
        reporter: &Reporter,
        now: Instant,
    ) -> Option<Fact> {
        let turn = self.turn % TURNS;
        self.turn += 1;
        let (about, says) = match turn {
            PERSON_TURN => (About::Person, person(config, reporter)),
            NETWORK_TURN => (About::Network, network(reporter.latest.snapshot().links(), ROOM)),
            SYSTEM_TURN => (About::System, self.system.clone()),
            _ => return None,
        };
        Fact::new(about, &says.to_string(), now)
    }
}

/// Returns who drives, as identified by the key; the name is in the settings.
fn person(config: &Config, reporter: &Reporter) -> Value {
    let (session, operator, console) = reporter.guard_client.who();
    let key = operator.map(|key| key.to_string());
    let name = key.as_ref().and_then(|key| config.people.get(key));
    json!({
        "key": key,
        "name": name,
        "session": session.map(|session| session.get()),
        "ended_by": reporter.guard_client.ended_by(),
        "console": console.map(|console| format!("{:016x}", console.get())),
    })
}

/// Returns the state of the first links, as many as fit into `room` bytes of JSON, and the number
/// left out.
fn network(links: &[LinkStats], room: usize) -> Value {
    let mut told: Vec<Value> = Vec::new();
    let mut bytes = 0;
    for link in links {
        let says = json!({
            "link": link.link,
            "name": link.name,
            "state": format!("{:?}", link.state),
            "rtt_ms": link.rtt_ms.map(tenths),
            "owd_out_ms": link.owd_out.map(quantiles),
            "owd_in_ms": link.owd_in.map(quantiles),
            "loss_out": link.loss_out.map(thousandths),
            "loss_in": link.loss_in.map(thousandths),
            "sent_bps": link.sent.bps(),
            "received_bps": link.received.bps(),
        });
        bytes += says.to_string().len() + 1;
        if bytes > room {
            break;
        }
        told.push(says);
    }
    let left_out = links.len() - told.len();
    json!({ "links": told, "left_out": left_out })
}

fn quantiles(delays: Delays) -> [f64; 3] {
    [delays.p50, delays.p95, delays.p99].map(tenths)
}

/// Rounds milliseconds to one decimal: further digits are noise and take space.
fn tenths(ms: f32) -> f64 {
    (f64::from(ms) * 10.0).round() / 10.0
}

/// Rounds a share to three decimals.
fn thousandths(share: f32) -> f64 {
    (f64::from(share) * 1e3).round() / 1e3
}

const SOFTWARE: &str = concat!("tautline ", env!("CARGO_PKG_VERSION"));
/// Calls of [`Facts::next`] per second.
const TURNS: u64 = 20;
const PERSON_TURN: u64 = 0;
const NETWORK_TURN: u64 = 7;
const SYSTEM_TURN: u64 = 14;
/// Bytes of a record that the links may fill: all but the text around them.
const ROOM: usize = Fact::TEXT_BYTES_MAX - 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn link(number: u8) -> LinkStats {
        LinkStats {
            link: number,
            name: "n".repeat(64),
            rtt_ms: Some(123.456),
            owd_out: Some(Delays { p50: 1234.56, p95: 2345.67, p99: 3456.78 }),
            owd_in: Some(Delays { p50: 1234.56, p95: 2345.67, p99: 3456.78 }),
            loss_out: Some(1.0 / 3.0),
            loss_in: Some(2.0 / 3.0),
            ..LinkStats::default()
        }
    }

    #[test]
    fn a_fact_lists_as_many_links_as_fit() {
        let one = network(&[link(3)], ROOM);
        let told = &one["links"][0];
        assert_eq!((&told["rtt_ms"], &told["loss_out"]), (&json!(123.5), &json!(0.333)));
        assert_eq!(one["left_out"], 0);
        let links: Vec<LinkStats> = (0..16).map(link).collect();
        let many = network(&links, ROOM);
        assert!(many["left_out"].as_u64().is_some_and(|count| (1..16).contains(&count)), "{many}");
        assert!(Fact::new(About::Network, &many.to_string(), Instant::ZERO).is_some());
        assert_eq!(network(&[], ROOM)["links"], json!([]));
    }
}

//! Topics of other programs as received from the vehicle: descriptor, newest unit, and the local
//! receiver.

use std::collections::BTreeMap;
use std::sync::Arc;

use tautline_net::Programs;
use tautline_net::channels::{self, APPLICATION_MIN};
use tautline_net::datagram::Address;
use tautline_transport::ChannelNumber;
use tautline_transport::channel::Descriptor;
use tautline_units::Instant;

/// All channels that the vehicle has described, including Tautline's own, and the local programs
/// that get units.
pub(crate) struct Topics {
    channels: BTreeMap<ChannelNumber, Topic>,
    programs: Programs,
    undescribed: u64,
}

struct Topic {
    descriptor: Arc<Descriptor>,
    newest: Option<Newest>,
}

/// Newest unit of a topic: its arrival, its length, and its first 512 bytes for the page.
struct Newest {
    at: Instant,
    length: usize,
    begin: Vec<u8>,
}

impl Topics {
    /// Creates the state before a session's first descriptor. Each unit of a topic in `programs`
    /// goes to the program there.
    pub(crate) fn new(programs: &BTreeMap<String, Address>) -> Self {
        let programs = Programs::new(programs);
        let mut topics = Self { channels: BTreeMap::new(), programs, undescribed: 0 };
        topics.handle_new_session();
        topics
    }

    /// Forgets the channels of an earlier session, except Tautline's own.
    pub(crate) fn handle_new_session(&mut self) {
        let ours = channels::all().into_iter();
        let ours = ours.map(|channel| (channel.number, Topic::of(channel.descriptor)));
        self.channels = ours.collect();
    }

    /// Records the descriptor of a channel; those of Tautline's own channels are known.
    pub(crate) fn handle_described(&mut self, channel: ChannelNumber, descriptor: Descriptor) {
        if channel.get() >= APPLICATION_MIN {
            self.channels.insert(channel, Topic::of(descriptor));
        }
    }

    /// Keeps a unit for the page and forwards it to its program, unless the channel is one of
    /// Tautline's own; returns its descriptor. `None`, and counted, before the channel is
    /// described.
    pub(crate) fn handle_unit(
        &mut self,
        channel: ChannelNumber,
        bytes: &[u8],
        now: Instant,
    ) -> Option<Arc<Descriptor>> {
        let Some(topic) = self.channels.get_mut(&channel) else {
            self.undescribed += 1;
            return None;
        };
        if channel.get() >= APPLICATION_MIN {
            let begin = bytes[..bytes.len().min(SHOWN_BYTES_MAX)].to_vec();
            topic.newest = Some(Newest { at: now, length: bytes.len(), begin });
            self.programs.send(&topic.descriptor.topic, bytes);
        }
        Some(topic.descriptor.clone())
    }

    /// Returns the other programs' topics for the consoles, as JSON, with the beginning of each
    /// one's newest unit and its age at `now`; `None` without topics.
    pub(crate) fn told(&self, now: Instant) -> Option<String> {
        let theirs = self.channels.iter().filter(|(channel, _)| channel.get() >= APPLICATION_MIN);
        let told: Vec<_> = theirs.map(|(channel, topic)| topic.told(*channel, now)).collect();
        (!told.is_empty()).then(|| serde_json::Value::from(told).to_string())
    }

    /// Returns the drop counters with their names.
    pub(crate) fn drops(&self) -> [(&'static str, u64); 2] {
        [
            ("topics: unit before its description", self.undescribed),
            ("topics: unit not taken by its program", self.programs.undelivered()),
        ]
    }
}

impl Topic {
    fn of(descriptor: Descriptor) -> Self {
        Self { descriptor: Arc::new(descriptor), newest: None }
    }

    fn told(&self, channel: ChannelNumber, now: Instant) -> serde_json::Value {
        let Descriptor { topic, message_encoding, schema_name, .. } = &*self.descriptor;
        let newest = self.newest.as_ref().map(|newest| {
            serde_json::json!({
                "ageMs": now.since(newest.at).as_millis() as u64,
                "bytes": newest.length,
                "text": text(newest),
            })
        });
        serde_json::json!({
            "channel": channel.get(),
            "topic": topic,
            "encoding": message_encoding,
            "schema": schema_name,
            "newest": newest,
        })
    }
}

/// Returns the readable beginning of a unit, with ` ..` if it is longer; `None` if it is not text.
fn text(newest: &Newest) -> Option<String> {
    let is_cut = newest.length > newest.begin.len();
    let readable = match std::str::from_utf8(&newest.begin) {
        Ok(text) => text,
        // The truncation may split a character.
        Err(error) if is_cut && error.error_len().is_none() => {
            std::str::from_utf8(&newest.begin[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let is_text = readable.chars().all(|c| !c.is_control() || c.is_ascii_whitespace());
    is_text.then(|| format!("{readable}{}", if is_cut { " .." } else { "" }))
}

/// Maximum length in bytes of the beginning of a unit that a page shows.
const SHOWN_BYTES_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use tautline_net::datagram::Server;

    use super::*;

    const SCAN: ChannelNumber = ChannelNumber::new(APPLICATION_MIN);

    fn scan() -> Descriptor {
        let (topic, message_encoding) = ("/scan".to_owned(), "json".to_owned());
        Descriptor { topic, message_encoding, schema_name: "Scan".into(), ..Descriptor::default() }
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn a_topic_is_shown_with_its_newest_unit_once_it_is_described() {
        let mut topics = Topics::new(&BTreeMap::new());
        assert_eq!(topics.handle_unit(SCAN, b"{}", at(1)), None);
        assert_eq!((topics.drops()[0].1, topics.told(at(1))), (1, None));
        topics.handle_described(SCAN, scan());
        assert_eq!(topics.handle_unit(SCAN, b"{\"a\":1}", at(10)).as_deref(), Some(&scan()));
        let told: serde_json::Value = serde_json::from_str(&topics.told(at(60)).unwrap()).unwrap();
        let newest = serde_json::json!({ "ageMs": 50, "bytes": 7, "text": "{\"a\":1}" });
        let expected = serde_json::json!([{
            "channel": 16, "topic": "/scan", "encoding": "json", "schema": "Scan", "newest": newest,
        }]);
        assert_eq!(told, expected);
        topics.handle_new_session();
        assert_eq!(topics.told(at(70)), None, "another session's numbers are others");
    }

    #[test]
    fn our_own_channels_are_known_and_not_shown() {
        let mut topics = Topics::new(&BTreeMap::new());
        let ours = topics.handle_unit(channels::TELEMETRY, b"x", at(1)).unwrap();
        assert_eq!(ours.topic, "/vehicle/telemetry");
        topics.handle_described(channels::TELEMETRY, scan());
        let still = topics.handle_unit(channels::TELEMETRY, b"x", at(2)).unwrap();
        assert_eq!(still.topic, "/vehicle/telemetry");
        assert_eq!(topics.told(at(2)), None);
    }

    #[test]
    fn only_text_is_shown_as_text() {
        let shown = |bytes: &[u8]| {
            let begin = bytes[..bytes.len().min(SHOWN_BYTES_MAX)].to_vec();
            text(&Newest { at: at(0), length: bytes.len(), begin })
        };
        assert_eq!(shown(b"a\tb\n").as_deref(), Some("a\tb\n"));
        assert_eq!((shown(&[0xff, 0xfe]), shown(b"a\0b"), shown(b"a\x1b[2J")), (None, None, None));
        let long = shown("ä".repeat(300).as_bytes()).unwrap();
        assert_eq!(long, format!("{} ..", "ä".repeat(256)));
        let odd = shown(format!("x{}", "ä".repeat(300)).as_bytes()).unwrap();
        assert_eq!(odd, format!("x{} ..", "ä".repeat(255)));
    }

    #[test]
    fn a_unit_goes_to_its_program_and_is_counted_where_none_is() {
        let folder = tempfile::tempdir().unwrap();
        let address = Address::Path(folder.path().join("scan.sock"));
        let mut topics = Topics::new(&BTreeMap::from([("/scan".to_owned(), address.clone())]));
        topics.handle_described(SCAN, scan());
        topics.handle_unit(SCAN, b"lost", at(1));
        assert_eq!(topics.drops()[1].1, 1);
        let server = Server::open(&address).unwrap();
        topics.handle_unit(SCAN, b"taken", at(2));
        let mut buffer = [0; 16];
        let (length, _) = server.receive(&mut buffer).expect("it has been sent");
        assert_eq!(&buffer[..length], b"taken");
        assert_eq!(topics.drops()[1].1, 1);
    }
}

//! Topics of other programs: what each says on a socket of its own goes to the operator by a channel of its own.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::Deserialize;
use tautline_net::channels::{self, APPLICATION_MIN};
use tautline_net::datagram::{Address, Server};
use tautline_net::driver::Handle;
use tautline_net::file;
use tautline_transport::ChannelNumber;
use tautline_transport::channel::{self, Channel, Descriptor};
use tautline_units::Bitrate;
use tokio::time::MissedTickBehavior;

/// A topic of another program: one entry of `[[topics]]` in the settings.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topic {
    /// What it is called, such as `/scan`; 1 to 255 bytes.
    pub topic: String,
    /// Where the program says it: each datagram that comes here is a unit.
    pub listen: Address,
    /// The most that it takes of each link, headers included, kbit/s; 1 to 20000.
    pub rate_cap_kbps: u32,
    /// What counts among its units.
    #[serde(default)]
    pub order: Order,
    /// What it waits for.
    #[serde(default)]
    pub priority: Priority,
    /// Time after which a unit is worthless, ms; 1 to 30000.
    #[serde(default = "deadline_ms")]
    pub deadline_ms: u64,
    /// How a unit is encoded, by MCAP's name for it.
    #[serde(default)]
    pub message_encoding: String,
    /// What the schema is called.
    #[serde(default)]
    pub schema_name: String,
    /// How the schema is encoded, by MCAP's name for it.
    #[serde(default)]
    pub schema_encoding: String,
    /// The schema's file; all of them have 8 KiB at most.
    pub schema: Option<PathBuf>,
}

/// What counts among the units of a topic.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The newest one.
    #[default]
    NewestWins,
    /// Every one, until its deadline.
    ByDeadline,
}

/// What a topic waits for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// For all else: one copy, in what that leaves.
    #[default]
    Data,
    /// For commands and feedback: a copy on every link.
    Telemetry,
}

/// Units that other programs said and that went no further.
#[derive(Debug, Default)]
pub struct Counters {
    /// The event loop had no room for them.
    pub refused: AtomicU64,
}

/// The topics of other programs, while their sockets are open.
pub(crate) struct Topics {
    sources: Vec<(Channel, Server, Duration)>,
}

impl Topics {
    /// Opens the socket of each.
    ///
    /// # Errors
    /// One line that names the socket that is taken, or the schema that cannot be read.
    pub(crate) fn open(topics: &[Topic]) -> anyhow::Result<Self> {
        let open = |(number, topic): (usize, &Topic)| {
            let server = Server::open(&topic.listen).with_context(|| named_so(topic))?;
            let deadline = Duration::from_millis(topic.deadline_ms);
            Ok((topic.channel(number)?, server, deadline))
        };
        let sources = topics.iter().enumerate().map(open).collect::<anyhow::Result<Vec<_>>>()?;
        let schemas = sources.iter().map(|(channel, ..)| channel.descriptor.schema.len());
        let bytes = schemas.sum::<usize>();
        let fits = bytes <= SCHEMA_BYTES_MAX;
        ensure!(
            fits,
            "topics: all schemas have {bytes} bytes: must have {SCHEMA_BYTES_MAX} at most"
        );
        Ok(Self { sources })
    }

    /// Hands on what the programs say, for ever.
    pub(crate) async fn carry(self, handle: &Handle, counters: &Counters) -> Infallible {
        if self.sources.is_empty() {
            return std::future::pending().await;
        }
        for (channel, ..) in &self.sources {
            handle.open(channel.clone());
        }
        let mut due = tokio::time::interval(LOOK);
        due.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut unit = vec![0; UNIT_BYTES_MAX];
        loop {
            due.tick().await;
            for (channel, server, deadline) in &self.sources {
                // What a program says too fast waits in its socket, not before slices and telemetry.
                for _ in 0..BURST {
                    let Some((length, _)) = server.receive(&mut unit) else { break };
                    if !handle.send(channel.number, unit[..length].to_vec(), *deadline) {
                        counters.refused.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        }
    }
}

impl Topic {
    /// Checks every topic.
    ///
    /// # Errors
    /// One line that names the topic and what of it is wrong.
    pub(crate) fn validate(topics: &[Self]) -> anyhow::Result<()> {
        ensure!(topics.len() <= TOPICS_MAX, "topics: at most {TOPICS_MAX}");
        let ours: Vec<Channel> = channels::all().into();
        let mut names: BTreeSet<&str> =
            ours.iter().map(|channel| channel.descriptor.topic.as_str()).collect();
        for topic in topics {
            let Self { topic: name, rate_cap_kbps, deadline_ms, .. } = topic;
            let texts = [&topic.message_encoding, &topic.schema_name, &topic.schema_encoding];
            ensure!((1..=255).contains(&name.len()), "topics: {name:?}: must have 1 to 255 bytes");
            ensure!(
                names.insert(name),
                "topics: {name:?} stands twice, or is one of Tautline's own"
            );
            ensure!(
                texts.iter().all(|text| text.len() <= 255),
                "topics: {name:?}: encodings and the schema's name must have at most 255 bytes"
            );
            ensure!(
                (1..=20_000).contains(rate_cap_kbps),
                "topics: {name:?}: rate_cap_kbps = {rate_cap_kbps}: must be 1 to 20000"
            );
            ensure!(
                (1..=30_000).contains(deadline_ms),
                "topics: {name:?}: deadline_ms = {deadline_ms}: must be 1 to 30000"
            );
        }
        Ok(())
    }

    /// Returns its channel, the `number`th of all.
    fn channel(&self, number: usize) -> anyhow::Result<Channel> {
        let schema = match &self.schema {
            Some(path) => file::read(path, file::TEXT_BYTES_MAX)
                .with_context(|| format!("{}: cannot read {}", named_so(self), path.display()))?,
            None => Vec::new(),
        };
        Ok(Channel {
            number: ChannelNumber::new(APPLICATION_MIN + number as u8),
            order: match self.order {
                Order::NewestWins => channel::Order::NewestWins,
                Order::ByDeadline => channel::Order::ByDeadline,
            },
            priority: match self.priority {
                Priority::Data => channel::Priority::Data,
                Priority::Telemetry => channel::Priority::Telemetry,
            },
            rate_cap: Some(Bitrate::from_kbps(self.rate_cap_kbps.into())),
            descriptor: Descriptor {
                topic: self.topic.clone(),
                message_encoding: self.message_encoding.clone(),
                schema_name: self.schema_name.clone(),
                schema_encoding: self.schema_encoding.clone(),
                schema,
            },
        })
    }
}

fn named_so(topic: &Topic) -> String {
    format!("topics: {:?}", topic.topic)
}

fn deadline_ms() -> u64 {
    500
}

/// With the units of one look at each, a sixteenth of the event loop's queue.
const TOPICS_MAX: usize = 8;
const LOOK: Duration = Duration::from_millis(5);
/// Four hundred units of a topic a second.
const BURST: usize = 2;
/// More than any datagram of the system has.
const UNIT_BYTES_MAX: usize = 256 << 10;
/// What a session has room for beside Tautline's own: told at 64 kbit/s, it takes a second.
const SCHEMA_BYTES_MAX: usize = 8 << 10;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc;

    use tautline_net::Local;
    use tautline_net::clock::Clock;
    use tautline_net::datagram::Client;
    use tautline_net::driver::{Driver, Output};

    use super::*;

    fn topic(settings: &str) -> Topic {
        parsed(settings).unwrap()
    }

    fn parsed(settings: &str) -> Result<Topic, serde_json::Error> {
        serde_json::from_str(settings)
    }

    #[test]
    fn what_is_not_said_of_a_topic_has_its_default() {
        let told = topic(r#"{"topic": "/scan", "listen": "/tmp/a.sock", "rate_cap_kbps": 100}"#);
        assert_eq!(
            (told.order, told.priority, told.deadline_ms),
            (Order::NewestWins, Priority::Data, 500)
        );
        let channel = told.channel(3).unwrap();
        assert_eq!(channel.number, ChannelNumber::new(APPLICATION_MIN + 3));
        assert_eq!(channel.rate_cap, Some(Bitrate::from_kbps(100)));
        assert!(parsed(r#"{"topic": "/scan", "listen": "/tmp/a.sock"}"#).is_err(), "no cap");
    }

    #[test]
    fn a_topic_that_makes_no_sense_is_refused_by_name() {
        let refused = |change: fn(&mut Topic)| {
            let mut changed =
                topic(r#"{"topic": "/scan", "listen": "/tmp/a.sock", "rate_cap_kbps": 100}"#);
            Topic::validate(std::slice::from_ref(&changed)).unwrap();
            change(&mut changed);
            Topic::validate(&[changed]).unwrap_err().to_string()
        };
        assert!(refused(|it| it.rate_cap_kbps = 0).contains("\"/scan\": rate_cap_kbps = 0"));
        assert!(refused(|it| it.deadline_ms = 0).contains("deadline_ms = 0"));
        assert!(refused(|it| it.topic.clear()).contains("1 to 255 bytes"));
        assert!(refused(|it| it.message_encoding = "x".repeat(256)).contains("at most 255"));
        assert!(refused(|it| it.topic = "/vehicle/telemetry".into()).contains("Tautline's own"));
        let twice = topic(r#"{"topic": "/scan", "listen": "/tmp/a.sock", "rate_cap_kbps": 100}"#);
        assert!(Topic::validate(&[twice.clone(), twice.clone()]).is_err());
        assert!(Topic::validate(&vec![twice; TOPICS_MAX + 1]).is_err());
    }

    #[test]
    fn schemas_that_a_session_has_no_room_for_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("schema");
        fs::write(&file, vec![b'x'; SCHEMA_BYTES_MAX + 1]).unwrap();
        let mut topic =
            topic(r#"{"topic": "/scan", "listen": "127.0.0.1:0", "rate_cap_kbps": 100}"#);
        topic.schema = Some(file);
        let words = Topics::open(&[topic]).err().unwrap().to_string();
        assert!(words.contains("8192 at most"), "{words}");
        let ours = channels::all().iter().map(|it| it.descriptor.bytes().get()).sum::<u64>();
        assert!(ours + (SCHEMA_BYTES_MAX + TOPICS_MAX * 4 * 256) as u64 <= 64 << 10, "{ours}");
    }

    #[tokio::test]
    async fn each_datagram_of_a_program_is_a_unit_of_its_channel() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scan.sock");
        let settings = format!(r#"{{"topic": "/scan", "listen": {path:?}, "rate_cap_kbps": 100}}"#);
        let topics = Topics::open(&[topic(&settings)]).unwrap();
        let (told, units) = mpsc::channel();
        let driver = Driver::spawn(&[Local::default()], Clock::start(), move |output| {
            // Without a session every unit comes back.
            if let Output::Refused(channel, unit) = output {
                let _ = told.send((channel, unit.to_vec()));
            }
        });
        let driver = driver.unwrap();
        let (handle, counters) = (driver.handle(), Counters::default());
        let carry = topics.carry(&handle, &counters);
        let say = async move {
            let mut client = Client::new(&Address::Path(path));
            for unit in 0..20_u8 {
                while !client.send(&[unit; 3]) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
            let take = move || {
                (0..20).map(|_| units.recv_timeout(Duration::from_secs(5))).collect::<Vec<_>>()
            };
            tokio::task::spawn_blocking(take).await.unwrap()
        };
        let units = tokio::select! { never = carry => match never {}, units = say => units };
        let expected = (0..20).map(|unit| Ok((ChannelNumber::new(APPLICATION_MIN), vec![unit; 3])));
        assert_eq!(units, expected.collect::<Vec<_>>());
        assert_eq!(counters.refused.load(Ordering::Relaxed), 0);
    }
}

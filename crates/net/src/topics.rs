//! Topics of other programs: datagrams on a topic's socket go to the other end of the session on
//! the topic's channel.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::channels::{self, APPLICATION_MIN};
use crate::clock::Clock;
use crate::datagram::{Address, Sender, Server};
use crate::driver::Handle;
use crate::settings::Faults;
use crate::{LogLimit, RateBound, file, unavailable};
use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use tautline_transport::channel::{self, Channel, Descriptor};
use tautline_transport::{ChannelNumber, SendError};
use tautline_units::{Bitrate, Bounded, ByteCount, Instant};
use tokio::time::MissedTickBehavior;

/// Topic of another program: one entry of `[[topics]]` in the settings.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topic {
    /// Name of the topic, such as `/scan`.
    pub topic: String,
    /// Address at which the program's datagrams arrive; each datagram is a unit.
    pub listen: Address,
    /// Maximum rate in bytes of units, kbit/s: for data over all links together, averaged over one
    /// second; for telemetry on each link.
    pub rate_cap_kbps: u32,
    /// Rule for which of the topic's units still count.
    #[serde(default)]
    pub order: Order,
    /// Priority of the topic's channel.
    #[serde(default)]
    pub priority: Priority,
    /// Time after which a unit is worthless, ms.
    #[serde(default = "deadline_ms")]
    pub deadline_ms: u64,
    /// Encoding of a unit, by its MCAP name.
    #[serde(default)]
    pub message_encoding: String,
    /// Name of the schema.
    #[serde(default)]
    pub schema_name: String,
    /// Encoding of the schema, by its MCAP name.
    #[serde(default)]
    pub schema_encoding: String,
    /// File of the schema; at most 6 KiB for all topics together. `None` for units without one.
    pub schema: Option<PathBuf>,
}

/// Order of the units of a topic.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The newest unit replaces older ones.
    #[default]
    NewestWins,
    /// Every unit counts until its deadline.
    ByDeadline,
}

/// Priority of a topic.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// Sent after all other channels: one copy, in the remaining capacity.
    #[default]
    Data,
    /// Sent after commands and feedback: a copy on every link.
    Telemetry,
}

/// Units of other programs that were dropped, by reason.
#[derive(Debug, Default)]
pub struct Counters {
    /// Units refused because the queue of the event loop was full.
    pub refused: AtomicU64,
    /// Units too large for the present links.
    too_large: AtomicU64,
    /// Units whose sending would take longer than the deadline at the topic's rate cap.
    over_cap: AtomicU64,
    /// Units refused because the queues were full, or the wait behind queued ones would take longer
    /// than the deadline.
    congested: AtomicU64,
    /// Units refused because there was no session or no link.
    nowhere: AtomicU64,
    /// Newest refusal of each topic, until it is answered to the topic's program.
    newest: Mutex<[Option<Refusal>; TOPICS_MAX]>,
    logged: Mutex<LogLimit>,
}

/// A refused unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Refusal {
    bytes: ByteCount,
    why: Why,
}

/// Reason of a refusal, with the size limit where it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Why {
    TooLarge(ByteCount),
    OverCap(ByteCount),
    Congested,
    Nowhere,
}

impl Counters {
    /// Records that a unit of a topic was refused: counts it by reason, and keeps it for the answer
    /// to its program in place of an earlier one. Ignores the channels that are no topic.
    pub fn handle_refused(
        &self,
        channel: ChannelNumber,
        bytes: ByteCount,
        why: SendError,
        now: Instant,
    ) {
        let number = usize::from(channel.get()).checked_sub(APPLICATION_MIN.into());
        let Some(number) = number.filter(|number| *number < TOPICS_MAX) else { return };
        let (count, why) = match why {
            SendError::TooLarge { most, .. } => (&self.too_large, Why::TooLarge(most)),
            SendError::OverCap { most, .. } => (&self.over_cap, Why::OverCap(most)),
            SendError::Congested => (&self.congested, Why::Congested),
            _ => (&self.nowhere, Why::Nowhere),
        };
        count.fetch_add(1, Ordering::Relaxed);
        lock(&self.newest)[number] = Some(Refusal { bytes, why });
        if let (Why::TooLarge(most) | Why::OverCap(most), Some(left_out)) =
            (why, lock(&self.logged).take(now))
        {
            let why = why.name();
            tracing::warn!(number, %bytes, %most, left_out, "a unit of a topic was refused: {why}");
        }
    }

    /// Returns every count of dropped units with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let counts = [
            ("topics: unit refused by the event loop", &self.refused),
            ("topics: unit too large for the links", &self.too_large),
            ("topics: unit over the topic's cap", &self.over_cap),
            ("topics: unit refused, links busy", &self.congested),
            ("topics: unit refused, no link", &self.nowhere),
        ];
        counts.into_iter().map(|(name, count)| (name, count.load(Ordering::Relaxed)))
    }
}

impl Why {
    fn name(self) -> &'static str {
        match self {
            Self::TooLarge(_) => "too large for the links",
            Self::OverCap(_) => "over the topic's cap",
            Self::Congested => "links busy",
            Self::Nowhere => "no link",
        }
    }

    fn most(self) -> Option<ByteCount> {
        match self {
            Self::TooLarge(most) | Self::OverCap(most) => Some(most),
            Self::Congested | Self::Nowhere => None,
        }
    }
}

/// Topics of other programs, with their open sockets.
#[derive(Debug)]
struct Topics {
    sources: Vec<Source>,
}

/// Socket of one topic, and its latest sender.
#[derive(Debug)]
struct Source {
    channel: Channel,
    server: Server,
    deadline: Duration,
    sender: Option<Sender>,
    /// Rate limit of the answers to `sender`.
    answers: RateBound,
}

impl Source {
    /// Reports a refused unit to the topic's latest sender as JSON, unless there is none or the
    /// rate limit forbids it.
    fn answer(&mut self, refusal: Refusal, now: Instant) {
        let Some(sender) = self.sender.as_ref().filter(|_| self.answers.take(now)) else { return };
        let Refusal { bytes, why } = refusal;
        let answer = serde_json::json!({
            "topic": self.channel.descriptor.topic,
            "refused": why.name(),
            "bytes": bytes.get(),
            "most_bytes": why.most().map(ByteCount::get),
        });
        // A program whose socket has no address, or that does not read from it, learns of refusals
        // only from the counters.
        self.server.send(answer.to_string().as_bytes(), sender);
    }
}

/// Opens the sockets of the topics once they are available, and carries the units of their
/// programs, forever; returns the error of settings that cannot be opened.
pub async fn serve(
    topics: &[Topic],
    handle: Handle,
    counters: &Counters,
    clock: Clock,
) -> anyhow::Error {
    match unavailable::opened(async || Topics::open(topics)).await {
        Ok(topics) => match topics.carry(&handle, counters, clock).await {},
        Err(error) => error,
    }
}

impl Topics {
    /// Opens the socket of each topic.
    ///
    /// # Errors
    /// Returns one line that names the socket that is in use, the schema that cannot be read, or
    /// the excess of all schemas over 6 KiB.
    fn open(topics: &[Topic]) -> anyhow::Result<Self> {
        let open = |(number, topic): (usize, &Topic)| {
            let server = Server::open(&topic.listen).with_context(|| named_so(topic))?;
            let deadline = Duration::from_millis(topic.deadline_ms);
            let channel = topic.channel(number)?;
            let answers = RateBound::new(ANSWER_INTERVAL, 1);
            Ok(Source { channel, server, deadline, sender: None, answers })
        };
        let sources = topics.iter().enumerate().map(open).collect::<anyhow::Result<Vec<_>>>()?;
        let schemas = sources.iter().map(|it| it.channel.descriptor.schema.len());
        let bytes = schemas.sum::<usize>();
        let fits = bytes <= SCHEMA_BYTES_MAX;
        ensure!(
            fits,
            "topics: all schemas have {bytes} bytes: must have at most {SCHEMA_BYTES_MAX}"
        );
        Ok(Self { sources })
    }

    /// Forwards the programs' units to the other end, and answers refused ones, forever.
    async fn carry(mut self, handle: &Handle, counters: &Counters, clock: Clock) -> Infallible {
        if self.sources.is_empty() {
            return std::future::pending().await;
        }
        for Source { channel, .. } in &self.sources {
            handle.open(channel.clone());
        }
        let mut due = tokio::time::interval(LOOK);
        due.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut unit = vec![0; UNIT_BYTES_MAX];
        loop {
            due.tick().await;
            let refusals = std::mem::take(&mut *lock(&counters.newest));
            for (source, refusal) in self.sources.iter_mut().zip(refusals) {
                if let Some(refusal) = refusal {
                    source.answer(refusal, clock.now());
                }
                // Excess units wait in the program's socket, not ahead of slices and telemetry.
                for _ in 0..BURST {
                    let Some((length, sender)) = source.server.receive(&mut unit) else { break };
                    source.sender = Some(sender);
                    let said = unit[..length].to_vec();
                    if !handle.send(source.channel.number, said, source.deadline) {
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
    /// Returns a line for each fault, with the topic's name.
    pub fn validate(topics: &[Self]) -> anyhow::Result<()> {
        let mut faults = Faults::default();
        faults.of(Bounded::size("topics", topics.len(), 0..=TOPICS_MAX, "entries").check());
        let ours: Vec<Channel> = channels::all().into();
        let mut names: BTreeSet<&str> =
            ours.iter().map(|channel| channel.descriptor.topic.as_str()).collect();
        for topic in topics {
            let Self { topic: name, rate_cap_kbps, deadline_ms, .. } = topic;
            let texts = [
                ("topics.message_encoding", &topic.message_encoding),
                ("topics.schema_name", &topic.schema_name),
                ("topics.schema_encoding", &topic.schema_encoding),
            ];
            let texts = texts.map(|(text, it)| Bounded::size(text, it.len(), 0..=255, "bytes"));
            let numbers = [
                Bounded::new("topics.rate_cap_kbps", f64::from(*rate_cap_kbps), 1.0..=20e3),
                Bounded::new("topics.deadline_ms", *deadline_ms as f64, 1.0..=30e3),
            ];
            let named = Bounded::size("topics.topic", name.len(), 1..=255, "bytes");
            for bounded in [named].into_iter().chain(texts).chain(numbers) {
                faults.of(bounded.check().with_context(|| format!("topics: {name:?}")));
            }
            faults.unless(names.insert(name), || {
                format!("topics: {name:?} is used twice, or is one of Tautline's own")
            });
        }
        faults.finish()
    }

    /// Returns the channel of the topic, which is the `number`th from 0.
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn named_so(topic: &Topic) -> String {
    format!("topics: {:?}", topic.topic)
}

fn deadline_ms() -> u64 {
    500
}

/// Maximum number of topics, beyond which the settings are refused: one poll of all of them fills a
/// sixteenth of the event loop's queue.
const TOPICS_MAX: usize = 8;
/// Least interval between two answers to a topic's program, within which further refusals get none:
/// ten per second suffice for a program that adapts to them.
const ANSWER_INTERVAL: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_millis(5);
/// Maximum of units read of a topic per poll: 400 per second.
const BURST: usize = 2;
/// Size of the buffer for a unit: larger than any datagram.
const UNIT_BYTES_MAX: usize = 256 << 10;
/// Maximum length in bytes of the schemas of all programs' topics together, beyond which they are
/// refused: announcing them at 64 kbit/s takes about one second.
const SCHEMA_BYTES_MAX: usize = 6 << 10;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::{Arc, mpsc};

    use crate::Local;
    use crate::datagram::Client;
    use crate::driver::{Driver, Output};

    use super::*;

    fn topic(settings: &str) -> Topic {
        parsed(settings).unwrap()
    }

    fn parsed(settings: &str) -> Result<Topic, serde_json::Error> {
        serde_json::from_str(settings)
    }

    #[test]
    fn omitted_settings_of_a_topic_have_defaults() {
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
            format!("{:#}", Topic::validate(&[changed]).unwrap_err())
        };
        assert!(refused(|it| it.rate_cap_kbps = 0).contains("/scan\": topics.rate_cap_kbps = 0"));
        assert!(refused(|it| it.deadline_ms = 0).contains("deadline_ms = 0"));
        assert!(refused(|it| it.topic.clear()).contains("1 to 255 bytes"));
        assert!(refused(|it| it.message_encoding = "x".repeat(256)).contains("0 to 255 bytes"));
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
        assert!(words.contains("at most 6144"), "{words}");
        let ours = channels::all().iter().map(|it| it.descriptor.bytes().get()).sum::<u64>();
        assert!(ours + (SCHEMA_BYTES_MAX + TOPICS_MAX * 4 * 256) as u64 <= 64 << 10, "{ours}");
    }

    #[test]
    fn a_refused_topic_unit_is_counted_and_its_limit_kept() {
        let (counters, now) = (Counters::default(), Instant::from_millis(9));
        let bytes = |count| ByteCount::new(count);
        let cloud = ChannelNumber::new(APPLICATION_MIN + 3);
        let links = SendError::TooLarge { found: bytes(140_000), most: bytes(29_000) };
        counters.handle_refused(cloud, bytes(140_000), links, now);
        let cap = SendError::OverCap { found: bytes(140_000), most: bytes(56_000) };
        counters.handle_refused(cloud, bytes(140_000), cap, now);
        // A channel of Tautline's own, and one beyond all topics, are ignored here.
        counters.handle_refused(ChannelNumber::new(3), bytes(1), SendError::Congested, now);
        counters.handle_refused(ChannelNumber::new(255), bytes(1), SendError::Congested, now);
        let counts: Vec<u64> = counters.iter().map(|(_, count)| count).collect();
        assert_eq!(counts, [0, 1, 1, 0, 0]);
        let newest = lock(&counters.newest);
        let refusal = Refusal { bytes: bytes(140_000), why: Why::OverCap(bytes(56_000)) };
        assert_eq!(newest[3], Some(refusal));
        assert_eq!(newest.iter().flatten().count(), 1);
    }

    #[tokio::test]
    async fn each_datagram_of_a_program_is_a_unit_of_its_channel() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scan.sock");
        let settings = format!(r#"{{"topic": "/scan", "listen": {path:?}, "rate_cap_kbps": 100}}"#);
        let topics = Topics::open(&[topic(&settings)]).unwrap();
        let (told, units) = mpsc::channel();
        let counters = Arc::<Counters>::default();
        let refusals = counters.clone();
        let driver = Driver::spawn(&[Local::default()], Clock::start(), move |output| {
            // Without a session every unit is refused.
            if let Output::Refused(channel, unit, why) = output {
                refusals.handle_refused(channel, ByteCount::of(unit), why, Instant::ZERO);
                let _ = told.send((channel, unit.to_vec()));
            }
        });
        let driver = driver.unwrap();
        let handle = driver.handle();
        let carry = topics.carry(&handle, &counters, Clock::start());
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
            let units = tokio::task::spawn_blocking(take).await.unwrap();
            let mut answer = [0; 256];
            for _ in 0..1_000 {
                if let Some(length) = client.receive(&mut answer) {
                    return (units, String::from_utf8_lossy(&answer[..length]).into_owned());
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            panic!("the program gets no notice that there is no session")
        };
        let (units, answer) =
            tokio::select! { never = carry => match never {}, said = say => said };
        let told: serde_json::Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((&told["topic"], &told["refused"]), (&"/scan".into(), &"no link".into()));
        assert!(told["bytes"] == 3 && told["most_bytes"].is_null());
        let expected = (0..20).map(|unit| Ok((ChannelNumber::new(APPLICATION_MIN), vec![unit; 3])));
        assert_eq!(units, expected.collect::<Vec<_>>());
        assert_eq!(counters.refused.load(Ordering::Relaxed), 0);
        assert_eq!(counters.nowhere.load(Ordering::Relaxed), 20);
    }
}

//! Files of the black box and of the operator's recordings, by the readers that the binary has.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tautline_blackbox::mcap::{Break, Message, Record};
use tautline_blackbox::recording::End;
use tautline_blackbox::{Recording, Stream, Topic, drives};
use tautline_message::{Description, Snapshot, Telemetry, Values};

use crate::names::name_of;
use crate::operator::status;

/// Files of a black box, of one of its drives, or of a recording, in the order in which they were
/// written; each with the number of its drive, if it has one.
#[pyfunction]
pub(crate) fn record_files(path: PathBuf) -> PyResult<Vec<(PathBuf, Option<u32>)>> {
    if !path.is_dir() {
        return match path.exists() {
            true => Ok(vec![(path, None)]),
            false => Err(PyFileNotFoundError::new_err(path.display().to_string())),
        };
    }
    let log = path.join(CHANNELS);
    if log.exists() {
        return Ok(vec![(log, None)]);
    }
    let disk = |error: tautline_blackbox::Error| PyOSError::new_err(error.to_string());
    let drives = match drives::one(&path).map_err(disk)? {
        Some(drive) => vec![drive],
        None => drives::list(&path).map_err(disk)?,
    };
    let files: Vec<_> = drives
        .into_iter()
        .flat_map(|drive| drive.files.into_iter().map(move |file| (file, Some(drive.number))))
        .collect();
    match files.is_empty() {
        true => {
            let words = format!("{}: neither a black box nor a recording", path.display());
            Err(PyValueError::new_err(words))
        }
        false => Ok(files),
    }
}

/// A message of a file: topic, times of recording and of sending in ns of Unix time, its encoding,
/// and its content: bytes, or a dictionary of a message of Tautline's own.
type Told<'py> = (String, u64, u64, String, Bound<'py, PyAny>);

/// Reader of one file.
#[pyclass(module = "tautline._tautline", frozen)]
pub(crate) struct RecordFile(Mutex<Reader>);

struct Reader {
    source: Source,
    /// Topics to return; `None` for all.
    topics: Option<Vec<String>>,
    end: Ended,
}

enum Source {
    /// Verified file of a black box, and the number of the next record.
    BlackBox(Box<Recording>, usize),
    Log(Box<Log>),
    Over,
}

/// Kind of end of a file, words on it, and the signing key.
#[derive(Clone, Default)]
struct Ended {
    state: &'static str,
    words: String,
    key: Option<String>,
    records: u64,
}

/// State of reading a recording of the operator.
struct Log {
    stream: Stream<BufReader<File>>,
    bytes: u64,
    /// Topic and encoding by channel.
    channels: BTreeMap<u16, (String, String)>,
    description: Option<Description>,
    values: Option<Values>,
}

#[pymethods]
impl RecordFile {
    /// Opens a file; returns only messages of `topics`, if given.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, topics: Option<Vec<String>>) -> PyResult<Self> {
        py.detach(|| Reader::open(&path, topics)).map(|reader| Self(Mutex::new(reader)))
    }

    /// Returns the next messages, at most `count`; fewer only at the end of the file.
    fn take<'py>(&self, py: Python<'py>, count: usize) -> PyResult<Vec<Told<'py>>> {
        let mut told = Vec::new();
        let mut reader = lock(&self.0);
        while told.len() < count {
            match reader.next(py)? {
                Some(message) => told.push(message),
                None => break,
            }
        }
        Ok(told)
    }

    /// Returns how the file ends: "closed", "open", "broken", or empty before its end; words on it,
    /// the number of records, and the public key of its signatures.
    fn end(&self) -> (&'static str, String, u64, Option<String>) {
        let Ended { state, words, records, key } = lock(&self.0).end.clone();
        (state, words, records, key)
    }
}

impl Reader {
    fn open(path: &Path, topics: Option<Vec<String>>) -> PyResult<Self> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        let stream = Stream::new(BufReader::new(file))?;
        let Some(mut stream) = stream else {
            let words = "not an MCAP file".to_owned();
            let end = Ended { state: "broken", words, ..Ended::default() };
            return Ok(Self { source: Source::Over, topics, end });
        };
        let source = if begins_black_box(&mut stream)? {
            let recording = Recording::read(path);
            let recording = recording.map_err(|error| PyOSError::new_err(error.to_string()))?;
            Source::BlackBox(Box::new(recording), 0)
        } else {
            // From its beginning, so that a broken first record is found too.
            let stream = Stream::new(BufReader::new(File::open(path)?))?;
            let stream = stream.ok_or_else(|| PyOSError::new_err("the file has changed"))?;
            let (channels, description, values) = (BTreeMap::new(), None, None);
            Source::Log(Box::new(Log { stream, bytes, channels, description, values }))
        };
        Ok(Self { source, topics, end: Ended::default() })
    }

    fn next<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Told<'py>>> {
        let Self { source, topics, end } = self;
        let is_wanted = |topic: &str| {
            topics.as_ref().is_none_or(|topics| topics.iter().any(|wanted| wanted == topic))
        };
        match source {
            Source::Over => Ok(None),
            Source::BlackBox(recording, next) => {
                while let Some(record) = recording.records().get(*next) {
                    *next += 1;
                    let topic = record.topic.name();
                    if is_wanted(topic) {
                        let (at, body) = (record.unix_nanos, recording.bytes(record));
                        let data = PyBytes::new(py, body).into_any();
                        return Ok(Some((topic.to_owned(), at, at, "json".to_owned(), data)));
                    }
                }
                *end = ended(recording);
                *source = Source::Over;
                Ok(None)
            }
            Source::Log(log) => {
                let told = log.next(py, is_wanted, end)?;
                if told.is_none() {
                    *source = Source::Over;
                }
                Ok(told)
            }
        }
    }
}

impl Log {
    fn next<'py>(
        &mut self,
        py: Python<'py>,
        is_wanted: impl Fn(&str) -> bool,
        end: &mut Ended,
    ) -> PyResult<Option<Told<'py>>> {
        let Self { stream, bytes, channels, description, values } = self;
        loop {
            let (offset, record) = match stream.read_next()? {
                Some((offset, record)) => (offset, record),
                None => {
                    (end.state, end.words) = ("open", OPEN.to_owned());
                    return Ok(None);
                }
            };
            match record {
                Ok(Record::Header { .. } | Record::Schema | Record::DataEnd) => {}
                Ok(Record::Channel { id, topic, message_encoding }) => {
                    channels.insert(id, (topic.to_owned(), message_encoding.to_owned()));
                }
                Ok(Record::Message(message)) => {
                    end.records += 1;
                    let Some((topic, encoding)) = channels.get(&message.channel) else {
                        (end.state, end.words) =
                            ("broken", format!("a message at byte {offset} is of no channel"));
                        return Ok(None);
                    };
                    note(topic, &message, description, values);
                    if is_wanted(topic) {
                        let data = content(py, topic, &message, description, values)?;
                        let (at, sent) = (message.at, message.published_at);
                        return Ok(Some((topic.clone(), at, sent, encoding.clone(), data)));
                    }
                }
                Ok(Record::Footer) => {
                    end.state = "closed";
                    return Ok(None);
                }
                Ok(Record::Chunk(_)) | Err(Break::Foreign) => {
                    let left = bytes.saturating_sub(offset);
                    (end.state, end.words) = (
                        "broken",
                        format!(
                            "the record at byte {offset} is none of a recording; the {left} bytes \
                         from there on are not read"
                        ),
                    );
                    return Ok(None);
                }
                Err(Break::Short) => {
                    let left = bytes.saturating_sub(offset);
                    (end.state, end.words) = (
                        "open",
                        format!(
                            "{OPEN}; the last {left} bytes, from byte {offset} on, are an incomplete \
                         record"
                        ),
                    );
                    return Ok(None);
                }
            }
        }
    }
}

/// Keeps the machine's description and values, by which later messages are named.
fn note(
    topic: &str,
    message: &Message<'_>,
    description: &mut Option<Description>,
    values: &mut Option<Values>,
) {
    match topic {
        DESCRIPTION => *description = Description::decode(message.data).ok(),
        VALUES => *values = Values::decode(message.data).ok(),
        _ => {}
    }
}

/// Returns a message's content: bytes, or a dictionary of Tautline's own messages.
fn content<'py>(
    py: Python<'py>,
    topic: &str,
    message: &Message<'_>,
    description: &Option<Description>,
    values: &Option<Values>,
) -> PyResult<Bound<'py, PyAny>> {
    let dict = match topic {
        TELEMETRY => match Telemetry::decode(message.data) {
            Ok(telemetry) => {
                let (description, values) = (description.as_ref(), values.as_ref());
                let told = status::status(py, &telemetry, message.at, description, values, 0)?;
                return Ok(told.into_pyobject(py)?);
            }
            Err(_) => None,
        },
        DESCRIPTION => description.as_ref().map(|it| status::description(py, it)).transpose()?,
        VALUES => {
            values.as_ref().map(|it| status::readings(py, it, description.as_ref())).transpose()?
        }
        SNAPSHOT => Snapshot::decode(message.data).ok().map(|it| snapshot(py, &it)).transpose()?,
        _ => None,
    };
    match dict {
        Some(dict) => Ok(dict.into_any()),
        None => Ok(PyBytes::new(py, message.data).into_any()),
    }
}

/// Returns the named values and drop counts of a snapshot.
fn snapshot<'py>(py: Python<'py>, snapshot: &Snapshot) -> PyResult<Bound<'py, PyDict>> {
    let (values, drops) = (PyDict::new(py), PyDict::new(py));
    for value in snapshot.process.iter().flat_map(|process| &process.values) {
        values.set_item(&value.name, value.number)?;
    }
    let session = snapshot.session.iter().flat_map(|session| &session.drops);
    let process = snapshot.process.iter().flat_map(|process| &process.drops);
    for (name, count) in session.chain(process) {
        drops.set_item(name, count)?;
    }
    let dict = PyDict::new(py);
    dict.set_item("end", name_of(&snapshot.end))?;
    dict.set_item("values", values)?;
    dict.set_item("drops", drops)?;
    Ok(dict)
}

/// Returns whether a file is a black box, by the first channel: the first format names no profile.
fn begins_black_box(stream: &mut Stream<BufReader<File>>) -> std::io::Result<bool> {
    while let Some((_, record)) = stream.read_next()? {
        match record {
            Ok(Record::Header { .. } | Record::Schema) => {}
            Ok(Record::Channel { topic, .. }) => return Ok(topic == Topic::Drive.name()),
            Ok(_) | Err(_) => return Ok(false),
        }
    }
    Ok(false)
}

/// Returns the end of a verified file.
fn ended(recording: &Recording) -> Ended {
    let verdict = recording.verdict();
    let (state, mut words) = match &verdict.end {
        End::Closed => ("closed", String::new()),
        End::Open => ("open", OPEN.to_owned()),
        End::Broken(fault) => ("broken", fault.to_string()),
    };
    if verdict.unsigned > 0 {
        let count = verdict.unsigned;
        words.push_str(&format!("; {count} records behind the last signature are not read"));
    }
    Ended { state, words, key: verdict.key.clone(), records: verdict.records.into() }
}

fn lock(reader: &Mutex<Reader>) -> MutexGuard<'_, Reader> {
    reader.lock().unwrap_or_else(PoisonError::into_inner)
}

/// File of a recording that has all channels but the pictures.
const CHANNELS: &str = "channels.mcap";
const TELEMETRY: &str = "/vehicle/telemetry";
const DESCRIPTION: &str = "/vehicle/machine/description";
const VALUES: &str = "/vehicle/machine/values";
const SNAPSHOT: &str = "/vehicle/snapshot";
const OPEN: &str = "not closed: the power was cut, it is still written, or its end is missing";

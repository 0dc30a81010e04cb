//! A map as its file has it, before the DBC gives its names a meaning.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tautline_net::datagram::Address;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use crate::mistake::Mistake;

/// Settings of the process in a map; flags override them.
#[derive(Clone, PartialEq, Default, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// DBC file, relative to the map's folder; `None` if unset.
    pub dbc: Option<PathBuf>,
    /// Bus: a network interface, or `udp:` and an address; `None` if unset.
    pub bus: Option<String>,
    /// Address at which the guard listens for the machine; `None` if unset.
    pub guard: Option<Address>,
    /// Time in milliseconds without a control frame of the guard after which the machine is braked;
    /// `None` if unset.
    pub control_timeout_ms: Option<u64>,
    /// Address at which `/metrics` is served; `None` if unset.
    pub metrics: Option<SocketAddr>,
}

/// A map, entry by entry.
#[derive(Default, Debug)]
pub(crate) struct Map {
    pub(crate) settings: Settings,
    pub(crate) axes: Vec<Lined<WrittenAxis>>,
    pub(crate) actions: Vec<Lined<WrittenAction>>,
    pub(crate) values: Vec<Lined<WrittenValue>>,
    pub(crate) sends: Vec<Lined<Send>>,
    pub(crate) receives: Vec<Lined<Receive>>,
}

/// A part of a map with the line at which it begins.
#[derive(Clone, Debug)]
pub(crate) struct Lined<T> {
    pub(crate) line: usize,
    pub(crate) part: T,
}

/// Parts of a map in their order, each with its line and the name of the signal that it is for.
pub(crate) type Named<T> = Vec<Lined<(String, T)>>;

/// One entry `[[axis]]` of a map as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WrittenAxis {
    pub(crate) name: String,
    pub(crate) form: Option<String>,
    pub(crate) unit: String,
    pub(crate) low: f32,
    pub(crate) high: f32,
    pub(crate) rate: f32,
    /// `hold`, `zero`, `release`, or a set point; `hold` if unset.
    pub(crate) on_stop: Option<Value>,
}

/// One entry `[[action]]` of a map as written.
#[derive(Clone, Default, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WrittenAction {
    pub(crate) name: String,
    pub(crate) form: Option<String>,
    pub(crate) on_stop: Option<String>,
    pub(crate) allowed_while_held: bool,
}

/// One entry `[[value]]` of a map as written. Limits that it lacks are NaN.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WrittenValue {
    pub(crate) name: String,
    pub(crate) form: Option<String>,
    pub(crate) unit: String,
    pub(crate) low: f32,
    pub(crate) high: f32,
    pub(crate) warn_low: f32,
    pub(crate) warn_high: f32,
    pub(crate) alarm_low: f32,
    pub(crate) alarm_high: f32,
}

/// One entry `[[send]]` of a map as written: a message to send, with its signals.
#[derive(Default, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Send {
    pub(crate) message: String,
    pub(crate) period_ms: Option<u64>,
    pub(crate) during: During,
    pub(crate) counter: Option<Counter>,
    pub(crate) checksum: Option<Checksum>,
    pub(crate) fd: bool,
    pub(crate) bit_rate_switch: bool,
    #[serde(skip)]
    pub(crate) signals: Named<Sent>,
    #[serde(skip)]
    pub(crate) at_stop: Named<Value>,
    #[serde(skip)]
    pub(crate) at_end: Option<Named<Value>>,
}

/// One entry `[[receive]]` of a map as written: a message to receive, with its signals.
#[derive(Default, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Receive {
    pub(crate) message: String,
    pub(crate) timeout_ms: Option<u64>,
    /// Name of the fault that the machine has while the message does not come; `none` for no fault,
    /// which only leaves its signals unknown.
    pub(crate) fault: Option<String>,
    pub(crate) counter: Option<Counter>,
    pub(crate) checksum: Option<Checksum>,
    pub(crate) mismatch_max: Option<u32>,
    #[serde(skip)]
    pub(crate) signals: Named<Received>,
}

/// Time during which a message is sent.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum During {
    /// While the process runs.
    #[default]
    Always,
    /// While the guard is silent or the machine has a fault.
    Stop,
    /// Once, at the end of the process.
    End,
}

/// A counter's signal, and its highest value where that is not the highest of its bits.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(untagged, expecting = "the name of a signal, or { signal, max }")]
pub(crate) enum Counter {
    Signal(String),
    Bounded { signal: String, max: u64 },
}

/// A checksum's signal and its kind.
#[derive(Clone, PartialEq, Default, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Checksum {
    pub(crate) signal: String,
    pub(crate) kind: Option<ChecksumKind>,
    pub(crate) data_id: Option<u16>,
    pub(crate) mode: Mode,
    pub(crate) nibble: Option<String>,
    pub(crate) data_ids: Option<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub(crate) enum ChecksumKind {
    #[serde(rename = "xor")]
    Xor,
    #[serde(rename = "sum")]
    Sum,
    #[serde(rename = "crc8-j1850")]
    J1850,
    #[serde(rename = "e2e-1")]
    Profile1,
    #[serde(rename = "e2e-2")]
    Profile2,
    #[serde(rename = "toyota")]
    Toyota,
}

/// Bytes of a data id that profile 1 includes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    #[default]
    Both,
    Alternating,
    Low,
    Nibble,
}

/// A value of a signal as written: a number in its unit, or the name that the DBC gives a value.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged, expecting = "a number, or the name of a value")]
pub(crate) enum Value {
    Number(f64),
    Name(String),
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged, expecting = "a value, or a list of values")]
pub(crate) enum Values {
    One(Value),
    Many(Vec<Value>),
}

/// A signal that is sent: the same value always, or one that controls determine.
#[derive(Debug)]
pub(crate) enum Sent {
    Constant(Value),
    Bound(Box<Bound>),
}

/// Value of a signal by controls: one term or the sum of several, within limits.
#[derive(Clone, Default, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Bound {
    pub(crate) from: Option<String>,
    pub(crate) scale: Option<f64>,
    pub(crate) offset: Option<f64>,
    pub(crate) points: Option<Vec<(f64, f64)>>,
    pub(crate) values: Option<BTreeMap<String, Value>>,
    pub(crate) sum: Option<Vec<Term>>,
    pub(crate) min: Option<f64>,
    pub(crate) max: Option<f64>,
    pub(crate) rate_up_max: Option<f64>,
    pub(crate) rate_down_max: Option<f64>,
}

/// One control, by scale and offset, by points, or by a table of values.
#[derive(Clone, Default, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Term {
    pub(crate) from: Option<String>,
    pub(crate) scale: Option<f64>,
    pub(crate) offset: Option<f64>,
    pub(crate) points: Option<Vec<(f64, f64)>>,
    pub(crate) values: Option<BTreeMap<String, Value>>,
}

/// Use of a received signal, as written in a map.
#[derive(Clone, Default, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Received {
    pub(crate) state: Option<State>,
    pub(crate) notice: Option<String>,
    pub(crate) fault: Option<String>,
    pub(crate) action: Option<String>,
    pub(crate) axis: Option<String>,
    pub(crate) value: Option<String>,
    pub(crate) answer: Option<String>,
    pub(crate) scale: Option<f64>,
    pub(crate) offset: Option<f64>,
    pub(crate) points: Option<Vec<(f64, f64)>>,
    pub(crate) values: Option<BTreeMap<String, Values>>,
    pub(crate) signed_by_gear: bool,
    pub(crate) is: Option<Values>,
    pub(crate) above: Option<f64>,
    pub(crate) below: Option<f64>,
}

/// A field of the machine's state that a received signal can give.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Speed,
    SidewaysSpeed,
    YawRate,
    SteeringAngle,
    Gear,
    AccelerationAlong,
    AccelerationAcross,
    Charge,
}

impl Default for WrittenAxis {
    fn default() -> Self {
        Self {
            name: String::new(),
            form: None,
            unit: String::new(),
            low: f32::NAN,
            high: f32::NAN,
            rate: f32::NAN,
            on_stop: None,
        }
    }
}

impl Default for WrittenValue {
    fn default() -> Self {
        let none = f32::NAN;
        Self {
            name: String::new(),
            form: None,
            unit: String::new(),
            low: none,
            high: none,
            warn_low: none,
            warn_high: none,
            alarm_low: none,
            alarm_high: none,
        }
    }
}

impl Map {
    /// Reads a map; adds what it cannot read to `mistakes` and leaves it out.
    pub(crate) fn parse(text: &str, mistakes: &mut Vec<Mistake>) -> Self {
        let mut reader = Reader { text, mistakes };
        let (root, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            reader.note(error.span().unwrap_or_default(), error.message());
        }
        let mut root = root.into_inner();
        let (axes, actions, values) = (
            reader.lines(&mut root, "axis"),
            reader.lines(&mut root, "action"),
            reader.lines(&mut root, "value"),
        );
        let sends = reader.entries(&mut root, "send");
        let receives = reader.entries(&mut root, "receive");
        Self {
            axes,
            actions,
            values,
            sends: sends.into_iter().map(|it| reader.send(it)).collect(),
            receives: receives.into_iter().map(|it| reader.receive(it)).collect(),
            settings: reader.fields(root),
        }
    }

    /// Returns the names of all controls and actions that signals of the map are connected to.
    pub(crate) fn names(&self) -> BTreeSet<&str> {
        let sent = self.sends.iter().flat_map(|send| &send.part.signals);
        let sent = sent.filter_map(|Lined { part: (_, sent), .. }| match sent {
            Sent::Constant(_) => None,
            Sent::Bound(bound) => Some(bound),
        });
        let sent = sent.flat_map(|bound| {
            let terms = bound.sum.iter().flatten().map(|term| &term.from);
            terms.chain([&bound.from]).filter_map(Option::as_deref)
        });
        let received = self.receives.iter().flat_map(|receive| &receive.part.signals);
        let received = received.filter_map(|it| it.part.1.action.as_deref());
        sent.chain(received).collect()
    }
}

/// A map's text, and its mistakes so far.
struct Reader<'a> {
    text: &'a str,
    mistakes: &'a mut Vec<Mistake>,
}

impl<'a> Reader<'a> {
    fn note(&mut self, at: Range<usize>, what: impl Into<String>) {
        self.mistakes.push(Mistake::at(self.line(at), what.into().replace('\n', "; ")));
    }

    fn line(&self, at: Range<usize>) -> usize {
        let before = &self.text.as_bytes()[..at.start.min(self.text.len())];
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }

    /// Takes the array of tables called `name` out of `root`, and returns its tables; none if there
    /// is no such array.
    fn entries(&mut self, root: &mut DeTable<'a>, name: &str) -> Vec<Spanned<DeTable<'a>>> {
        let Some(entries) = root.remove(name) else { return Vec::new() };
        let at = entries.span();
        let DeValue::Array(entries) = entries.into_inner() else {
            self.note(at, format!("{name} is a list: begin each of its entries with [[{name}]]"));
            return Vec::new();
        };
        entries.into_iter().filter_map(|entry| self.table(entry)).collect()
    }

    /// Takes the array of tables called `name` out of `root`, and returns each table's fields.
    fn lines<T: DeserializeOwned + Default>(
        &mut self,
        root: &mut DeTable<'a>,
        name: &str,
    ) -> Vec<Lined<T>> {
        let entries = self.entries(root, name).into_iter();
        let lines = entries.map(|entry| {
            let line = self.line(entry.span());
            Lined { line, part: self.fields(entry.into_inner()) }
        });
        lines.collect()
    }

    fn send(&mut self, entry: Spanned<DeTable<'a>>) -> Lined<Send> {
        let line = self.line(entry.span());
        let mut table = entry.into_inner();
        let signals = self.named(&mut table, "signals").unwrap_or_default();
        let signals = self.each(signals, |reader, value| match value.get_ref() {
            DeValue::Table(_) => {
                let table = reader.table(value)?;
                Some(Sent::Bound(Box::new(reader.fields(table.into_inner()))))
            }
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_) => reader.value(value).map(Sent::Constant),
        });
        let at_stop = self.named(&mut table, "at_stop").unwrap_or_default();
        let at_stop = self.each(at_stop, Self::value);
        let at_end = self.named(&mut table, "at_end");
        let at_end = at_end.map(|at_end| self.each(at_end, Self::value));
        let part = Send { signals, at_stop, at_end, ..self.fields(table) };
        Lined { line, part }
    }

    fn receive(&mut self, entry: Spanned<DeTable<'a>>) -> Lined<Receive> {
        let line = self.line(entry.span());
        let mut table = entry.into_inner();
        let signals = self.named(&mut table, "signals").unwrap_or_default();
        let mut uses = Vec::new();
        for Lined { line, part: (name, value) } in signals {
            let at = value.span();
            let several = match value.into_inner() {
                DeValue::Array(several) => several,
                one => [Spanned::new(at, one)].into_iter().collect(),
            };
            for one in several {
                let Some(table) = self.table(one) else { continue };
                let part = (name.clone(), self.fields(table.into_inner()));
                uses.push(Lined { line, part });
            }
        }
        let part = Receive { signals: uses, ..self.fields(table) };
        Lined { line, part }
    }

    /// Takes the table of signals called `name` out of an entry; `None` if the entry has none.
    fn named(
        &mut self,
        entry: &mut DeTable<'a>,
        name: &str,
    ) -> Option<Named<Spanned<DeValue<'a>>>> {
        let table = self.table(entry.remove(name)?)?;
        let named = table.into_inner().into_iter().map(|(key, value)| Lined {
            line: self.line(key.span()),
            part: (key.into_inner().into_owned(), value),
        });
        let mut named: Vec<_> = named.collect();
        named.sort_by_key(|it| it.line);
        Some(named)
    }

    fn each<T>(
        &mut self,
        named: Named<Spanned<DeValue<'a>>>,
        mut read: impl FnMut(&mut Self, Spanned<DeValue<'a>>) -> Option<T>,
    ) -> Named<T> {
        let read = named.into_iter().filter_map(|Lined { line, part: (name, value) }| {
            Some(Lined { line, part: (name, read(self, value)?) })
        });
        read.collect()
    }

    fn table(&mut self, value: Spanned<DeValue<'a>>) -> Option<Spanned<DeTable<'a>>> {
        let at = value.span();
        match value.into_inner() {
            DeValue::Table(table) => Some(Spanned::new(at, table)),
            other => {
                self.note(at, format!("it is of type {}, and must be a table", other.type_str()));
                None
            }
        }
    }

    fn value(&mut self, value: Spanned<DeValue<'a>>) -> Option<Value> {
        let at = value.span();
        let read = Value::deserialize(ValueDeserializer::from(value));
        read.map_err(|error| self.note(at, error.message())).ok()
    }

    /// Reads the fields of a table one by one, so that each mistake is noted.
    fn fields<T: DeserializeOwned + Default>(&mut self, table: DeTable<'a>) -> T {
        let mut sound = DeTable::new();
        for (key, value) in table {
            let at = key.span();
            let alone = DeTable::from_iter([(key.clone(), value.clone())]);
            match read::<T>(alone) {
                Ok(_) => drop(sound.insert(key, value)),
                Err(error) => {
                    let at = error.span().filter(|span| span.start > 0).unwrap_or(at);
                    self.note(at, format!("{}: {}", key.get_ref(), error.message()));
                }
            }
        }
        read(sound).unwrap_or_default()
    }
}

fn read<T: DeserializeOwned>(table: DeTable<'_>) -> Result<T, toml::de::Error> {
    T::deserialize(ValueDeserializer::from(Spanned::new(0..0, DeValue::Table(table))))
}

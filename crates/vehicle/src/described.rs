use std::collections::BTreeMap;
use std::time::Duration;

use tautline_guard::description::{
    Action, Axis, Counts, Entry, Item, Reading, Revision, ValueForm, ValueInfo,
};
use tautline_guard::frame::Value as Read;
use tautline_message::{Description, Values};
use tautline_units::Instant;

/// Description and values of the machine, gathered from the frames that the guard passes on, and
/// sent to the operator when they are due.
#[derive(Debug, Default)]
pub(crate) struct DescribedMachine {
    /// Newest complete description; `None` before the first.
    description: Option<Description>,
    /// Description whose entries are being gathered; `None` while nothing is missing.
    gathered: Option<Gathered>,
    /// Newest readings of the values, by their indices. Numbers that are not known are left out.
    readings: BTreeMap<u8, Reading>,
    /// Time of the newest reading; zero before the first.
    read_at: Instant,
    /// Time at which the description was last sent; `None` before, and after a change.
    described_at: Option<Instant>,
    /// Time at which the values were last sent; `None` before.
    told_at: Option<Instant>,
    /// True if a reading has changed since the values were last sent.
    has_news: bool,
}

/// A statement of a machine about itself, in addition to its state.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Declared {
    /// An entry of its description.
    Entry(Entry),
    /// A reading of one of its values.
    Value(Read),
}

/// Entries of one description, as far as they have arrived.
#[derive(Debug)]
struct Gathered {
    revision: Revision,
    counts: Counts,
    axes: BTreeMap<u8, Axis>,
    actions: BTreeMap<u8, Action>,
    values: BTreeMap<u8, ValueInfo>,
}

impl DescribedMachine {
    /// Takes an entry or a reading at `now`.
    pub(crate) fn handle(&mut self, declared: &Declared, now: Instant) {
        match declared {
            Declared::Entry(entry) => self.handle_entry(entry),
            Declared::Value(value) => self.handle_reading(value, now),
        }
    }

    /// Takes an entry. One that no machine can declare, and one of the known description, are
    /// ignored. One of another description than the gathered entries replaces them. Once a
    /// description is complete, it replaces the known one, and all readings are forgotten.
    fn handle_entry(&mut self, entry: &Entry) {
        let Entry { revision, counts, index, item } = *entry;
        let is_known = self.description.as_ref().is_some_and(|it| it.revision == revision);
        if is_known || !counts.is_possible() || item.check().is_err() {
            return;
        }
        let is_same = |it: &Gathered| (it.revision, it.counts) == (revision, counts);
        let mut gathered = self.gathered.take().filter(is_same).unwrap_or_else(|| {
            let (axes, actions, values) = Default::default();
            Gathered { revision, counts, axes, actions, values }
        });
        match item {
            Item::Axis(axis) if index < counts.axes => drop(gathered.axes.insert(index, axis)),
            Item::Action(action) if index < counts.actions => {
                gathered.actions.insert(index, action);
            }
            Item::Value(value) if index < counts.values => {
                gathered.values.insert(index, value);
            }
            Item::Axis(_) | Item::Action(_) | Item::Value(_) => {}
        }
        match gathered.complete() {
            Ok(description) => {
                (self.description, self.described_at) = (Some(description), None);
                self.readings.clear();
                self.has_news = false;
            }
            Err(incomplete) => self.gathered = Some(incomplete),
        }
    }

    /// Takes a reading at `now`. One that the known description does not have, or has in another
    /// form, is ignored. A number that is not finite removes the known reading.
    fn handle_reading(&mut self, read: &Read, now: Instant) {
        let Read { revision, index, reading, .. } = *read;
        let description = self.description.as_ref().filter(|it| it.revision == revision);
        let value = description.and_then(|it| it.values.get(usize::from(index)));
        let changed = match (value.map(|value| value.form), reading) {
            (Some(ValueForm::Number), Reading::Number(number)) if !number.is_finite() => {
                self.readings.remove(&index).is_some()
            }
            (Some(ValueForm::Number), Reading::Number(_))
            | (Some(ValueForm::Text), Reading::Text(_)) => {
                self.readings.insert(index, reading) != Some(reading)
            }
            (Some(_) | None, _) => return,
        };
        self.read_at = now;
        self.has_news |= changed;
    }

    /// Returns the description if it is due: after a change, and every second.
    pub(crate) fn take_description(&mut self, now: Instant) -> Option<Description> {
        let description = self.description.clone()?;
        if self.described_at.is_some_and(|at| now.since(at) < REPEAT) {
            return None;
        }
        self.described_at = Some(now);
        Some(description)
    }

    /// Returns the values if they are due: after a change, at most every 100 ms, and every second.
    /// `None` also before a description or a reading.
    pub(crate) fn take_values(&mut self, now: Instant) -> Option<Values> {
        let description = self.description.as_ref()?;
        let interval = if self.has_news { INTERVAL } else { REPEAT };
        let is_early = self.told_at.is_some_and(|at| now.since(at) < interval);
        if is_early || self.readings.is_empty() && !self.has_news {
            return None;
        }
        (self.told_at, self.has_news) = (Some(now), false);
        let readings = self.readings.iter().map(|(index, reading)| (*index, *reading)).collect();
        Some(Values { revision: description.revision, taken_at: self.read_at, readings })
    }
}

impl Gathered {
    /// Returns the description if every entry is there, and otherwise what is.
    fn complete(self) -> Result<Description, Self> {
        let Counts { axes, actions, values } = self.counts;
        let lengths = (self.axes.len(), self.actions.len(), self.values.len());
        if lengths != (axes.into(), actions.into(), values.into()) {
            return Err(self);
        }
        Ok(Description {
            revision: self.revision,
            axes: self.axes.into_values().collect(),
            actions: self.actions.into_values().collect(),
            values: self.values.into_values().collect(),
        })
    }
}

/// Least interval of two messages of values.
const INTERVAL: Duration = Duration::from_millis(100);
/// Interval at which an unchanged description and unchanged values are repeated: an operator may
/// have joined, or a message may have been lost.
const REPEAT: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use tautline_guard::description::{
        ActionForm, ActionRule, ActionStop, AxisForm, AxisRule, AxisStop, Name, Text, Unit,
    };

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn revision(number: u32) -> Revision {
        Revision::new(number).unwrap()
    }

    /// Returns the entries of a machine with a boom, a horn, a battery and a task.
    fn entries(number: u32) -> Vec<Entry> {
        let counts = Counts { axes: 1, actions: 1, values: 2 };
        let name = |text| Name::new(text).unwrap();
        let (low, high, rate) = (-1.0, 1.0, 2.0);
        let rule = AxisRule { form: AxisForm::Position, low, high, rate, on_stop: AxisStop::Hold };
        let boom = Axis { name: name("boom"), unit: Unit::new("rad").unwrap(), rule };
        let (form, on_stop) = (ActionForm::Momentary, ActionStop::Off);
        let rule = ActionRule { form, on_stop, is_allowed_held: true };
        let horn = Action { name: name("horn"), rule };
        let none = [f32::NAN; 2];
        let value = |text, form| ValueInfo {
            name: name(text),
            unit: Unit::default(),
            form,
            range: none,
            warning: none,
            alarm: none,
        };
        let items = [
            (0, Item::Axis(boom)),
            (0, Item::Action(horn)),
            (0, Item::Value(value("battery", ValueForm::Number))),
            (1, Item::Value(value("task", ValueForm::Text))),
        ];
        let revision = revision(number);
        items.map(|(index, item)| Entry { revision, counts, index, item }).into()
    }

    fn read(number: u32, index: u8, reading: Reading) -> Read {
        Read { source: at(0), revision: revision(number), index, reading }
    }

    #[test]
    fn a_description_is_sent_when_complete_and_again_every_second() {
        let mut machine = DescribedMachine::default();
        let all = entries(1);
        // In any order, and from the middle of a round on.
        for entry in [&all[2], &all[3], &all[0], &all[0]] {
            machine.handle_entry(entry);
            assert_eq!(machine.take_description(at(0)).map(|it| it.revision), None);
        }
        machine.handle_entry(&all[1]);
        let description = machine.take_description(at(10)).unwrap();
        assert_eq!((description.axes.len(), description.actions.len()), (1, 1));
        assert_eq!(description.values[1].name.as_str(), "task");
        all.iter().for_each(|entry| machine.handle_entry(entry));
        assert!(machine.take_description(at(1_009)).is_none());
        assert!(machine.take_description(at(1_010)).is_some());
        // Another description counts once it is complete, and is then sent at once.
        let other = entries(2);
        other[..3].iter().for_each(|entry| machine.handle_entry(entry));
        assert!(machine.take_description(at(1_020)).is_none());
        machine.handle_entry(&other[3]);
        assert_eq!(machine.take_description(at(1_030)).unwrap().revision, revision(2));
    }

    #[test]
    fn entries_that_no_machine_can_declare_are_ignored() {
        let mut machine = DescribedMachine::default();
        for mut entry in entries(1) {
            entry.index += 2;
            machine.handle_entry(&entry);
            entry.counts.axes = 17;
            machine.handle_entry(&entry);
        }
        assert!(machine.take_description(at(0)).is_none());
    }

    #[test]
    fn values_are_sent_ten_times_a_second_at_most() {
        let mut machine = DescribedMachine::default();
        let number = |number: f32| Reading::Number(number);
        machine.handle_reading(&read(1, 0, number(1.0)), at(0));
        assert!(machine.take_values(at(0)).is_none(), "of an unknown description");
        entries(1).iter().for_each(|entry| machine.handle_entry(entry));
        assert!(machine.take_values(at(0)).is_none(), "no reading yet");
        let mut sent = 0;
        for millis in (0..1_000).step_by(10) {
            machine.handle_reading(&read(1, 0, number(millis as f32)), at(millis));
            sent += u32::from(machine.take_values(at(millis)).is_some());
        }
        assert_eq!(sent, 10);
        // Without news once a second.
        let last = machine.take_values(at(1_000)).unwrap();
        assert_eq!((last.taken_at, last.readings), (at(990), vec![(0, number(990.0))]));
        machine.handle_reading(&read(1, 0, number(990.0)), at(1_500));
        assert!(machine.take_values(at(1_990)).is_none());
        assert!(machine.take_values(at(2_000)).is_some());
        // A number that is no longer known is news.
        machine.handle_reading(&read(1, 0, number(f32::NAN)), at(2_010));
        assert_eq!(machine.take_values(at(2_100)).unwrap().readings, []);
    }

    #[test]
    fn readings_of_another_form_index_or_description_are_ignored() {
        let mut machine = DescribedMachine::default();
        entries(1).iter().for_each(|entry| machine.handle_entry(entry));
        let text = Reading::Text(Text::new("idle").unwrap());
        for read in [read(1, 0, text), read(1, 1, Reading::Number(1.0)), read(1, 2, text)] {
            machine.handle_reading(&read, at(0));
        }
        machine.handle_reading(&read(2, 1, text), at(0));
        assert!(machine.take_values(at(0)).is_none());
        machine.handle_reading(&read(1, 1, text), at(0));
        assert_eq!(machine.take_values(at(0)).unwrap().readings, [(1, text)]);
        // They end with their description.
        entries(2).iter().for_each(|entry| machine.handle_entry(entry));
        assert!(machine.take_values(at(5_000)).is_none());
    }
}

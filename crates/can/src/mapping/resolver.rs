use std::collections::BTreeSet;

use crate::database::Database;
use crate::declared::Declared;
use crate::message::Message;
use crate::mistake::{Mistake, nearest};
use crate::signal::Signal;
use crate::written::{Lined, Named, Value, Values};

/// Names of the map looked up in the DBC, and the mistakes so far.
pub(super) struct Resolver<'a> {
    pub(super) database: &'a Database,
    pub(super) declared: &'a Declared,
    pub(super) mistakes: Vec<Mistake>,
}

impl<'a> Resolver<'a> {
    pub(super) fn note(&mut self, line: usize, text: impl Into<String>) {
        self.mistakes.push(Mistake::at(line, text));
    }

    /// Returns the value of `result`; if it is an error, notes that for `line` and returns `None`.
    pub(super) fn noted<T>(&mut self, line: usize, result: Result<T, String>) -> Option<T> {
        result.map_err(|text| self.note(line, text)).ok()
    }

    pub(super) fn message(&mut self, line: usize, name: &str) -> Option<&'a Message> {
        if name.is_empty() {
            self.note(line, "message = \"..\" is missing: the name of a message in the DBC");
            return None;
        }
        let message = self.database.message(name);
        let message = self.noted(line, message)?;
        if message.id.checked().is_none() {
            self.note(line, format!("{name} has the identifier {}, which is too high", message.id));
            return None;
        }
        Some(message)
    }

    /// Returns the signals of `named` with their constant values; those that are mistakes are noted
    /// and left out.
    pub(super) fn constants(
        &mut self,
        message: &Message,
        named: &Named<Value>,
    ) -> Vec<(Signal, f64)> {
        let mut constants = Vec::new();
        for Lined { line, part: (name, value) } in named {
            let signal = signal(message, name);
            let value = signal.and_then(|(_, signal)| Ok((signal, constant(signal, value)?)));
            let value = self.noted(*line, value);
            constants.extend(value.map(|(signal, value)| (signal.clone(), value)));
        }
        constants
    }
}

/// Returns a signal of a message and its index.
///
/// # Errors
/// A text for people, if there is no such signal or it cannot be used.
pub(super) fn signal<'a>(message: &'a Message, name: &str) -> Result<(usize, &'a Signal), String> {
    if let Some((_, why)) = message.broken.iter().find(|(broken, _)| broken == name) {
        return Err(format!("{}.{name} cannot be used: {why}; correct the DBC", message.name));
    }
    let index = message.index(name).ok_or_else(|| {
        let known = message.signals.iter().map(|signal| &*signal.name);
        format!("{} has no signal {name}: {}", message.name, nearest(name, known))
    })?;
    Ok((index, &message.signals[index]))
}

/// Returns the value that the map gives a signal, in the signal's unit.
///
/// # Errors
/// A text for people, if the signal cannot have the value, or has none of that name.
pub(super) fn constant(signal: &Signal, value: &Value) -> Result<f64, String> {
    let value = match value {
        Value::Number(number) if number.is_finite() => *number,
        Value::Number(number) => return Err(format!("{}: {number} is no value", signal.name)),
        Value::Name(name) => signal.physical(named(signal, name)?),
    };
    let least = signal.range.map_or(f64::NEG_INFINITY, |(min, _)| min);
    let most = signal.range.map_or(f64::INFINITY, |(_, max)| max);
    let nearest = signal.physical(signal.raw(value));
    let is_there = signal.is_float() || (nearest - value).abs() <= signal.factor.abs() * 0.51;
    if !is_there || value < least || value > most {
        let lowest = signal.physical(signal.raw(f64::NEG_INFINITY)).max(least);
        let highest = signal.physical(signal.raw(f64::INFINITY)).min(most);
        return Err(format!("{}: {value} is not within {lowest} to {highest}", signal.name));
    }
    Ok(value)
}

/// Returns the bits of the value to which the DBC gives this name, in any case of letters.
///
/// # Errors
/// A text that suggests similar names, if there is none.
fn named(signal: &Signal, name: &str) -> Result<u64, String> {
    let found = signal.names.iter().find(|(_, its)| its.eq_ignore_ascii_case(name));
    let (integer, _) = found.ok_or_else(|| {
        let known = signal.names.iter().map(|(_, name)| &**name);
        format!("{} has no value {name:?}: {}", signal.name, nearest(name, known))
    })?;
    Ok(*integer as u64 & u64::MAX >> (64 - signal.length()))
}

/// Returns the bits of one or several values.
///
/// # Errors
/// Same as [`constant`].
pub(super) fn bits(signal: &Signal, values: &Values) -> Result<Vec<u64>, String> {
    let bits = |value: &Value| Ok(signal.raw(constant(signal, value)?));
    match values {
        Values::One(value) => Ok(vec![bits(value)?]),
        Values::Many(values) => values.iter().map(bits).collect(),
    }
}

/// Returns every repetition of an earlier name in the list, with its own line.
pub(super) fn twice<'a>(
    names: impl IntoIterator<Item = (usize, &'a str)>,
) -> Vec<(usize, &'a str)> {
    let mut seen = BTreeSet::new();
    names.into_iter().filter(|(_, name)| !seen.insert(*name)).collect()
}

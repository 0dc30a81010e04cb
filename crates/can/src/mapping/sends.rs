use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::resolver::{Resolver, constant, signal, twice};
use crate::checksum::{Checksum, Mode};
use crate::control::{Control, Term};
use crate::curve::Curve;
use crate::frame::Kind;
use crate::limits::Limits;
use crate::message::Message;
use crate::outgoing::{Bound, Outgoing, Schedule};
use crate::seal::{Check, Counter, Seal};
use crate::signal::Signal;
use crate::written::{self, ChecksumKind, During, Lined, Send, Sent, Value};

impl Resolver<'_> {
    pub(super) fn sends(&mut self, sends: &[Lined<Send>]) -> Vec<Outgoing> {
        let outgoing: Vec<Outgoing> = sends.iter().filter_map(|send| self.send(send)).collect();
        let names = sends.iter().map(|send| (send.line, &*send.part.message));
        for (line, name) in twice(names) {
            let message = self.database.message(name);
            let is_multiplexed =
                |message: &&Message| message.signals.iter().any(|its| its.selection.is_some());
            if message.ok().filter(is_multiplexed).is_none() {
                self.note(line, format!("{name} is sent by an entry above: join the two"));
            }
        }
        let is_braking = |it: &Outgoing| {
            let mut terms = it.bound.iter().flat_map(|bound| &bound.terms);
            matches!(it.schedule, Schedule::Always(_))
                && terms.any(|it| matches!(it.control, Control::Brake | Control::Forward))
        };
        // With other mistakes the brake may be among what they are about.
        if self.mistakes.is_empty() && !outgoing.iter().any(is_braking) {
            let text = "nothing sends the brake, or the speed of a machine with a twist: give a \
                        signal { from = \"brake\", scale = .. }, or { from = \"forward\" }";
            self.note(1, text);
        }
        outgoing
    }

    fn send(&mut self, send: &Lined<Send>) -> Option<Outgoing> {
        let Lined { line, part: send } = send;
        let message = self.message(*line, &send.message)?;
        let seal = self.seal(*line, message, send.counter.as_ref(), send.checksum.as_ref());
        let schedule = schedule(send, message);
        let schedule = self.noted(*line, schedule);
        let kind = match send.fd || message.size > 8 {
            true => Kind::Fd { bit_rate_switch: send.bit_rate_switch },
            false => Kind::Classic,
        };
        let mut constant_data = message.initial();
        let mut bound = Vec::new();
        let mut used = Vec::new();
        for Lined { line, part: (name, sent) } in &send.signals {
            let found = signal(message, name);
            let Some((index, signal)) = self.noted(*line, found) else { continue };
            used.push((*line, index));
            match sent {
                Sent::Constant(value) => {
                    let value = constant(signal, value);
                    if let Some(value) = self.noted(*line, value) {
                        signal.bits.set(&mut constant_data, signal.raw(value));
                    }
                }
                Sent::Bound(written) => bound.extend(self.bound(*line, signal, written)),
            }
        }
        self.select(message, &used, &mut constant_data);
        let sealed = sealed_names(send);
        for (position, (line, index)) in used.iter().enumerate() {
            let others = used[..position].iter().map(|(_, other)| &message.signals[*other]);
            let its = &message.signals[*index];
            for other in others.filter(|other| other.bits.overlaps(its.bits)) {
                self.note(*line, format!("{} and {} share bits: send one", its.name, other.name));
            }
        }
        for Lined { line, part: (name, _) } in &send.signals {
            if sealed.contains(&name.as_str()) {
                self.note(*line, format!("{name} is filled in: leave it out of signals"));
            }
        }
        let at_stop = self.constants(message, &send.at_stop);
        let at_end = send.at_end.as_ref().map(|at_end| self.constants(message, at_end));
        Some(Outgoing {
            name: message.name.clone(),
            id: message.id,
            kind,
            constant: constant_data,
            bound,
            at_stop,
            at_end,
            seal: seal?,
            schedule: schedule?,
            due: None,
            sent_at: None,
        })
    }

    fn bound(&mut self, line: usize, signal: &Signal, written: &written::Bound) -> Option<Bound> {
        let written = written.clone();
        let alone = written::Term {
            from: written.from,
            scale: written.scale,
            offset: written.offset,
            points: written.points,
            values: written.values,
        };
        let terms = match written.sum {
            Some(_) if alone.from.is_some() => {
                self.note(line, format!("{}: use either from or sum", signal.name));
                return None;
            }
            Some(terms) => terms,
            None => vec![alone],
        };
        let resolved = terms.iter().map(|term| {
            let term = self.term(signal, term);
            self.noted(line, term.map_err(|text| format!("{}: {text}", signal.name)))
        });
        let terms: Option<Vec<Term>> = resolved.collect();
        let (least, most) = signal.range.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
        let limits = Limits {
            min: written.min.unwrap_or(least).max(least),
            max: written.max.unwrap_or(most).min(most),
            rate_up_max: written.rate_up_max.unwrap_or(f64::INFINITY),
            rate_down_max: written.rate_down_max.unwrap_or(f64::INFINITY),
        };
        let is_sound =
            limits.min <= limits.max && limits.rate_up_max > 0.0 && limits.rate_down_max > 0.0;
        if !is_sound {
            let text = "min is above max, or a rate is not above 0";
            self.note(line, format!("{}: {text} ({limits})", signal.name));
            return None;
        }
        Some(Bound { signal: signal.clone(), terms: terms?, limits, last: 0.0 })
    }

    fn term(&self, signal: &Signal, written: &written::Term) -> Result<Term, String> {
        let name = written.from.as_deref();
        let name = name.ok_or("from = \"..\" is missing: the name of a control")?;
        let control = self.declared.control(name)?;
        let curve = match &written.values {
            Some(values) => values_of(signal, name, control, written, values)?,
            None => Curve::of(written.scale, written.offset, written.points.as_ref())?,
        };
        Ok(Term { name: name.to_owned(), control, curve })
    }

    /// Sets in `data` the switches that the multiplexed signals of `used` need, except those that
    /// the map sends itself; notes signals that no frame can have together.
    fn select(&mut self, message: &Message, used: &[(usize, usize)], data: &mut [u8]) {
        // Those that the map sends itself have their value already.
        let mut set: BTreeSet<usize> = used.iter().map(|(_, index)| *index).collect();
        for (line, index) in used {
            let mut index = *index;
            for _ in 0..message.signals.len() {
                let Some(selection) = &message.signals[index].selection else { break };
                let switch = &message.signals[selection.switch];
                let value = selection.values.first().map_or(0, |values| *values.start());
                if set.insert(selection.switch) {
                    switch.bits.set(data, value);
                }
                let present = switch.bits.get(data);
                if !selection.holds(present) {
                    let (name, switch) = (&message.signals[index].name, &switch.name);
                    let text = "no frame has it together with the signals above: it takes an \
                                entry of its own";
                    self.note(*line, format!("{name}: {switch} is {present}, and {text}"));
                    break;
                }
                index = selection.switch;
            }
        }
    }

    /// Returns counter and checksum of a message that is sent or received; `None` after noting a
    /// mistake in them.
    pub(super) fn seal(
        &mut self,
        line: usize,
        message: &Message,
        counter: Option<&written::Counter>,
        checksum: Option<&written::Checksum>,
    ) -> Option<Seal> {
        let profile = checksum.and_then(|checksum| checksum.kind);
        let counter = counter.map(|counter| counter_of(message, counter, profile));
        let counter = self.noted(line, counter.transpose());
        let checksum = checksum.map(|checksum| check_of(message, checksum));
        let checksum = self.noted(line, checksum.transpose());
        let seal = Seal { counter: counter?, checksum: checksum? };
        let needs_counter = match seal.checksum.as_ref().map(|check| &check.kind) {
            Some(Checksum::Profile1 { mode, .. }) => *mode == Mode::Alternating,
            Some(Checksum::Profile2 { .. }) => true,
            Some(Checksum::Xor | Checksum::Sum | Checksum::J1850 | Checksum::Toyota) | None => {
                false
            }
        };
        if needs_counter && seal.counter.is_none() {
            let text = "its checksum depends on a counter: counter = \"..\" is missing";
            self.note(line, format!("{}: {text}", message.name));
            return None;
        }
        Some(seal)
    }
}

fn schedule(send: &Send, message: &Message) -> Result<Schedule, String> {
    let Message { name, .. } = message;
    let period = send.period_ms.or(message.period_ms);
    let period = match period {
        Some(period) if (1..=PERIOD_MS_MAX).contains(&period) => Ok(Duration::from_millis(period)),
        Some(period) => Err(format!("{name}: period_ms = {period} is not 1 to {PERIOD_MS_MAX}")),
        None => Err(format!("{name}: period_ms is missing, and the DBC names no period")),
    };
    match send.during {
        During::Always => Ok(Schedule::Always(period?)),
        During::Stop => Ok(Schedule::Stop(period?)),
        During::End if send.at_end.is_some() => Ok(Schedule::End),
        During::End => Err(format!("{name}: it is sent at the end alone, and at_end is missing")),
    }
}

/// Returns the names of the signals that the adapter fills in by itself: counter, checksum and
/// nibble of the data id.
fn sealed_names(send: &Send) -> Vec<&str> {
    let counter = send.counter.as_ref().map(|counter| match counter {
        written::Counter::Signal(signal) | written::Counter::Bounded { signal, .. } => &**signal,
    });
    let checksum = send.checksum.iter();
    let checksum = checksum.flat_map(|it| [Some(&*it.signal), it.nibble.as_deref()]);
    counter.into_iter().chain(checksum.flatten()).collect()
}

/// Returns the curve that gives each value of the control the signal's value of that name in the
/// map.
///
/// # Errors
/// A text for people, if the control is a number, the names are not exactly those of its values, or
/// the signal cannot have one of the values.
fn values_of(
    signal: &Signal,
    name: &str,
    control: Control,
    written: &written::Term,
    values: &BTreeMap<String, Value>,
) -> Result<Curve, String> {
    if written.scale.is_some() || written.offset.is_some() || written.points.is_some() {
        return Err("use values alone, without scale, offset or points".into());
    }
    let expected = control.values();
    let is_all = expected.iter().all(|name| values.contains_key(*name));
    if expected.is_empty() {
        return Err(format!("{name} is a number: use scale, offset or points"));
    }
    if !is_all || values.len() != expected.len() {
        let expected = expected.join(", ");
        return Err(format!("values of {name} has a value for each of {expected}, and no other"));
    }
    let values = expected.iter().map(|name| constant(signal, &values[*name]));
    Ok(Curve::Values(values.collect::<Result<_, _>>()?))
}

fn counter_of(
    message: &Message,
    written: &written::Counter,
    checksum: Option<ChecksumKind>,
) -> Result<Counter, String> {
    let (name, max) = match written {
        written::Counter::Signal(name) => (name, None),
        written::Counter::Bounded { signal, max } => (signal, Some(*max)),
    };
    let (_, signal) = signal(message, name)?;
    let highest = u64::MAX >> (64 - signal.length());
    // Profile 1 counts to 14; 15 marks a signal that is not valid.
    let usual = if checksum == Some(ChecksumKind::Profile1) { 14.min(highest) } else { highest };
    let max = max.unwrap_or(usual);
    if max == 0 || max > highest {
        return Err(format!("{name}: max = {max} is not 1 to {highest}"));
    }
    Ok(Counter { bits: signal.bits, max })
}

fn check_of(message: &Message, written: &written::Checksum) -> Result<Check, String> {
    let (_, its) = signal(message, &written.signal)?;
    let at = its.bits.byte().ok_or_else(|| {
        format!("{} is no checksum of one byte: it has {} bits", its.name, its.length())
    })?;
    let missing = |what: &str| format!("checksum of {}: {what} is missing", message.name);
    let kinds = "kind = \"..\" (xor, sum, crc8-j1850, e2e-1, e2e-2 or toyota)";
    let kind = written.kind.ok_or_else(|| missing(kinds))?;
    let is_profile1 = kind == ChecksumKind::Profile1;
    let is_nibble = written.mode == written::Mode::Nibble;
    if (written.data_id.is_some() || written.mode != written::Mode::Both) && !is_profile1 {
        return Err(format!("checksum of {}: data_id and mode are of e2e-1", message.name));
    }
    if written.data_ids.is_some() && kind != ChecksumKind::Profile2 {
        return Err(format!("checksum of {}: data_ids is of e2e-2", message.name));
    }
    if written.nibble.is_some() != is_nibble {
        return Err(format!("checksum of {}: nibble goes with mode = \"nibble\"", message.name));
    }
    let kind = match kind {
        ChecksumKind::Xor => Checksum::Xor,
        ChecksumKind::Sum => Checksum::Sum,
        ChecksumKind::J1850 => Checksum::J1850,
        ChecksumKind::Toyota => Checksum::Toyota,
        ChecksumKind::Profile1 => Checksum::Profile1 {
            data_id: written.data_id.ok_or_else(|| missing("data_id"))?,
            mode: match written.mode {
                written::Mode::Both => Mode::Both,
                written::Mode::Alternating => Mode::Alternating,
                written::Mode::Low => Mode::Low,
                written::Mode::Nibble => Mode::Nibble,
            },
        },
        ChecksumKind::Profile2 => {
            let data_ids = written.data_ids.as_ref().and_then(|ids| ids.as_slice().try_into().ok());
            let data_ids = data_ids.ok_or_else(|| missing("data_ids, a list of 16 bytes,"))?;
            Checksum::Profile2 { data_ids }
        }
    };
    let nibble = written.nibble.as_ref().map(|name| {
        let (_, signal) = signal(message, name)?;
        let high = u64::from(written.data_id.unwrap_or_default() >> 8 & 0xF);
        match signal.length() {
            4 => Ok((signal.bits, high)),
            length => Err(format!("{name} has {length} bits, and four of the data id go there")),
        }
    });
    Ok(Check { kind, at, nibble: nibble.transpose()? })
}

/// Maximum period of a message in milliseconds, beyond which its map is refused: a message that
/// comes less often is no command.
const PERIOD_MS_MAX: u64 = 10_000;

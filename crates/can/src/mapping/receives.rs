use std::time::Duration;

use tautline_guard::description::{ActionForm, ValueForm};
use tautline_guard::{Fault, Notice};

use super::resolver::{Resolver, bits, signal, twice};
use crate::control::Control;
use crate::curve::Curve;
use crate::declared::Found;
use crate::incoming::{Condition, Incoming, Target, Use};
use crate::message::Message;
use crate::mistake::nearest;
use crate::names::{key, member};
use crate::outgoing::Outgoing;
use crate::signal::Signal;
use crate::written::{Lined, Map, Receive, Received, State};

impl Resolver<'_> {
    pub(super) fn receives(&mut self, receives: &[Lined<Receive>]) -> Vec<Incoming> {
        let incoming = receives.iter().filter_map(|it| self.receive(it)).collect();
        let names = receives.iter().map(|it| (it.line, &*it.part.message));
        for (line, name) in twice(names) {
            self.note(line, format!("{name} is received by an entry above: join the two"));
        }
        let uses = || receives.iter().flat_map(|it| &it.part.signals);
        let states = uses().filter_map(|it| it.part.1.state.map(|state| (it.line, state)));
        let mut states: Vec<(usize, State)> = states.collect();
        states.sort_by_key(|(line, state)| (*state, *line));
        for pair in states.windows(2).filter(|pair| pair[0].1 == pair[1].1) {
            let (above, line) = (pair[0].0, pair[1].0);
            self.note(line, format!("line {above} gives the same state: use one of the two"));
        }
        let has_speed = states.iter().any(|(_, state)| *state == State::Speed);
        if !has_speed && self.mistakes.is_empty() {
            let text = "nothing gives the speed, without which no machine is driven: give a \
                        signal { state = \"speed\", scale = .. } in m/s";
            self.note(1, text);
        }
        incoming
    }

    fn receive(&mut self, receive: &Lined<Receive>) -> Option<Incoming> {
        let Lined { line, part: receive } = receive;
        let message = self.message(*line, &receive.message)?;
        let (counter, checksum) = (receive.counter.as_ref(), receive.checksum.as_ref());
        let seal = self.seal(*line, message, counter, checksum);
        let timeout = timeout(receive, message);
        let timeout = self.noted(*line, timeout);
        let fault = match receive.fault.as_deref() {
            None => Ok(Some(Fault::Unreachable)),
            Some("none") => Ok(None),
            Some(name) => member("fault", name).map(Some),
        };
        let fault = self.noted(*line, fault);
        if receive.mismatch_max == Some(0) {
            self.note(*line, "mismatch_max is at least 1");
        }
        let mut uses = Vec::new();
        for Lined { line, part: (name, received) } in &receive.signals {
            let found = signal(message, name);
            let Some((index, signal)) = self.noted(*line, found) else { continue };
            let target = self.target(signal, received);
            let target = target.map_err(|text| format!("{name}: {text}"));
            let Some(target) = self.noted(*line, target) else { continue };
            uses.push(Use { index, target, raw: 0, heard_at: None });
        }
        let is_safety = |its: &Use| {
            matches!(its.target, Target::Notice(..) | Target::Fault(..) | Target::Gear { .. })
        };
        if fault == Some(None) && uses.iter().any(is_safety) {
            let text = "while it does not come, its notices, faults and gear would say that all \
                        is well: leave fault = \"none\" out";
            self.note(*line, format!("{}: {text}", message.name));
        }
        Some(Incoming {
            message: message.clone(),
            timeout: timeout?,
            fault: fault?,
            seal: seal?,
            mismatch_max: receive.mismatch_max.unwrap_or(MISMATCH_MAX),
            uses,
            heard_at: None,
            count: None,
            mismatches: 0,
        })
    }

    fn target(&self, signal: &Signal, received: &Received) -> Result<Target, String> {
        let Received { state, notice, fault, action, axis, value, answer, .. } = received;
        let named = [notice, fault, action, axis, value, answer];
        let named = named.iter().filter(|name| name.is_some()).count();
        if named + usize::from(state.is_some()) != 1 {
            let text = "it takes one of state, notice, fault, action, axis, value and answer";
            return Err(text.into());
        }
        unused(received)?;
        let curve = || Curve::of(received.scale, received.offset, received.points.as_ref());
        let condition = || condition(signal, received);
        if let Some(state) = state {
            return state_of(*state, signal, received);
        }
        if let Some(name) = notice {
            return match member("notice", name)? {
                Notice::GuardSilent => {
                    Err("the adapter itself gives the notice guard_silent".into())
                }
                notice => Ok(Target::Notice(notice, condition()?)),
            };
        }
        if let Some(name) = fault {
            return Ok(Target::Fault(member("fault", name)?, condition()?));
        }
        let declared = [("action", action), ("axis", axis), ("value", value), ("answer", answer)];
        let named = declared.iter().find_map(|(what, name)| Some((*what, name.as_deref()?)));
        let (what, name) = named.unwrap_or_default();
        match (what, self.declared.find(name)) {
            ("action", Some(Found::Action(number, _))) => Ok(Target::Action(number, condition()?)),
            ("axis", Some(Found::Axis(number))) => Ok(Target::Axis(number, curve()?)),
            ("value", Some(Found::Value(number, ValueForm::Number))) => {
                Ok(Target::Number(number, curve()?))
            }
            ("value", Some(Found::Value(number, ValueForm::Text))) => Ok(Target::Text(number)),
            ("answer", Some(Found::Action(action, rule))) if rule.form == ActionForm::Request => {
                answer_of(action, signal, received)
            }
            _ => {
                let what = if what == "answer" { "action of the form request" } else { what };
                let names: Vec<String> =
                    self.declared.items.iter().map(|item| key(item.name())).collect();
                let nearest = nearest(name, names.iter().map(String::as_str));
                Err(format!("the map declares no {what} {name:?}: {nearest}"))
            }
        }
    }

    /// Notes declared axes, actions and values that no signal has to do with, and a twist whose
    /// motion is not reported. Does nothing if there are other mistakes.
    pub(super) fn check_use(&mut self, map: &Map, outgoing: &[Outgoing], incoming: &[Incoming]) {
        if !self.mistakes.is_empty() {
            // The signals may be among what they are about.
            return;
        }
        let follows = |control| outgoing.iter().any(|it| it.follows(control));
        let targets = incoming.iter().flat_map(|it| &it.uses).map(|its| &its.target);
        let is_turn = |it: &Target| matches!(it, Target::YawRate(_));
        let is_sideways = |it: &Target| matches!(it, Target::SidewaysSpeed(_));
        let needed = [
            (Control::YawRate, "yaw_rate", targets.clone().any(is_turn)),
            (Control::Sideways, "sideways_speed", targets.clone().any(is_sideways)),
        ];
        for (control, state, is_reported) in needed {
            if follows(control) && !is_reported {
                let text = format!(
                    "it is commanded and not reported, so the machine would never count as \
                     standing: give a signal {{ state = \"{state}\" }}"
                );
                self.note(1, format!("{state}: {text}"));
            }
        }
        let is_acted = |action| {
            [Control::Action(action), Control::Request(action)].into_iter().any(follows)
                || outgoing.iter().any(|it| it.indicates(action))
        };
        let is_given = |value| {
            targets.clone().any(|it| match it {
                Target::Number(number, _) | Target::Text(number) => *number == value,
                _ => false,
            })
        };
        let axes = map.axes.iter().zip(0..).filter(|(_, axis)| !follows(Control::Axis(*axis)));
        let actions = map.actions.iter().zip(0..).filter(|(_, action)| !is_acted(*action));
        let values = map.values.iter().zip(0..).filter(|(_, value)| !is_given(*value));
        let sent = axes.map(|(it, _)| it.line).chain(actions.map(|(it, _)| it.line));
        for line in sent {
            self.note(line, "no signal follows it: give one { from = its name }");
        }
        for (Lined { line, .. }, _) in values {
            self.note(*line, "no signal gives it: give one { value = its name }");
        }
    }
}

fn timeout(receive: &Receive, message: &Message) -> Result<Duration, String> {
    let name = &message.name;
    let timeout = receive.timeout_ms.or(message.period_ms.map(|period| PERIODS * period));
    match timeout {
        Some(timeout) if (1..=TIMEOUT_MS_MAX).contains(&timeout) => {
            Ok(Duration::from_millis(timeout))
        }
        Some(timeout) => {
            Err(format!("{name}: timeout_ms = {timeout} is not 1 to {TIMEOUT_MS_MAX}"))
        }
        None => Err(format!("{name}: timeout_ms is missing, and the DBC names no period")),
    }
}

fn state_of(state: State, signal: &Signal, received: &Received) -> Result<Target, String> {
    let curve = || Curve::of(received.scale, received.offset, received.points.as_ref());
    let is_signed_by_gear = received.signed_by_gear;
    Ok(match state {
        State::Speed => Target::Speed { curve: curve()?, is_signed_by_gear },
        State::SidewaysSpeed => Target::SidewaysSpeed(curve()?),
        State::YawRate => Target::YawRate(curve()?),
        State::SteeringAngle => Target::SteeringAngle(curve()?),
        State::AccelerationAlong => Target::AccelerationAlong(curve()?),
        State::AccelerationAcross => Target::AccelerationAcross(curve()?),
        State::Charge => Target::Charge(curve()?),
        State::Gear => gear(signal, received)?,
    })
}

/// Fails if the map gives a field that has no meaning for this use of a signal.
fn unused(received: &Received) -> Result<(), String> {
    let Received { state, axis, value, answer, .. } = received;
    let is_gear = *state == Some(State::Gear);
    let is_number = state.is_some() && !is_gear || axis.is_some() || value.is_some();
    let is_named = is_gear || answer.is_some();
    let refused = [
        ("scale", received.scale.is_some() && !is_number),
        ("offset", received.offset.is_some() && !is_number),
        ("points", received.points.is_some() && !is_number),
        ("is", received.is.is_some() && (is_number || is_named)),
        ("above", received.above.is_some() && (is_number || is_named)),
        ("below", received.below.is_some() && (is_number || is_named)),
        ("values", received.values.is_some() && !is_named),
        ("signed_by_gear", received.signed_by_gear && *state != Some(State::Speed)),
    ];
    match refused.iter().find(|(_, is_refused)| *is_refused) {
        Some((name, _)) => Err(format!("{name} has no meaning here: leave it out")),
        None => Ok(()),
    }
}

fn gear(signal: &Signal, received: &Received) -> Result<Target, String> {
    let [drive, reverse, neither] = named_bits(signal, received, ["drive", "reverse", "neither"])?;
    match drive.is_empty() {
        true => Err("values names no drive".into()),
        false => Ok(Target::Gear { drive, reverse, neither }),
    }
}

fn answer_of(action: u8, signal: &Signal, received: &Received) -> Result<Target, String> {
    let [accepted, refused] = named_bits(signal, received, ["accepted", "refused"])?;
    match accepted.is_empty() {
        true => Err("values names no accepted".into()),
        false => Ok(Target::Answer { action, accepted, refused }),
    }
}

/// Returns the bits that the map's `values` give each of `known`; none for one that they lack.
fn named_bits<const N: usize>(
    signal: &Signal,
    received: &Received,
    known: [&str; N],
) -> Result<[Vec<u64>; N], String> {
    let values = received.values.as_ref().ok_or_else(|| {
        let known = known.map(|name| format!("{name} = ..")).join(", ");
        format!("values = {{ {known} }} is missing")
    })?;
    if let Some(name) = values.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("values has no {name}: {}", nearest(name, known)));
    }
    let mut named = [const { Vec::new() }; N];
    for (named, name) in named.iter_mut().zip(known) {
        if let Some(values) = values.get(name) {
            *named = bits(signal, values)?;
        }
    }
    Ok(named)
}

fn condition(signal: &Signal, received: &Received) -> Result<Condition, String> {
    let Received { is, above, below, .. } = received;
    match (is, above, below) {
        (None, None, None) => Ok(Condition::NotZero),
        (Some(values), None, None) => Ok(Condition::Is(bits(signal, values)?)),
        (None, above, below) => {
            let (least, most) = (below.unwrap_or(f64::MIN), above.unwrap_or(f64::MAX));
            match least <= most {
                true => Ok(Condition::Outside(least..=most)),
                false => Err(format!("below = {least} is higher than above = {most}")),
            }
        }
        (Some(_), ..) => Err("use either is, or above and below".into()),
    }
}

/// Number of a message's periods without a frame after which the message counts as lost, unless the
/// map has a timeout.
const PERIODS: u64 = 5;
const TIMEOUT_MS_MAX: u64 = 10_000;
/// Number of mismatches of checksum or counter, less one for each matching frame, at which a
/// message counts as lost, unless the map has a number: as in comma's panda.
const MISMATCH_MAX: u32 = 5;

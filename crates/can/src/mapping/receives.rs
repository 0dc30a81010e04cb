use std::time::Duration;

use tautline_guard::description::Action;
use tautline_guard::{Fault, Member, Notice};

use super::resolver::{Resolver, bits, signal, twice};
use crate::curve::Curve;
use crate::incoming::{Condition, Incoming, Target, Use};
use crate::message::Message;
use crate::mistake::nearest;
use crate::signal::Signal;
use crate::written::{Lined, Receive, Received, State};

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
            let target = target(signal, received);
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

fn target(signal: &Signal, received: &Received) -> Result<Target, String> {
    let Received { state, notice, fault, signal: light, .. } = received;
    let named = [state.is_some(), notice.is_some(), fault.is_some(), light.is_some()];
    if named.iter().filter(|is_named| **is_named).count() != 1 {
        return Err("it takes one of state, notice, fault and signal".into());
    }
    unused(received)?;
    let curve = || Curve::of(received.scale, received.offset, received.points.as_ref());
    let is_signed_by_gear = received.signed_by_gear;
    if let Some(state) = state {
        return Ok(match state {
            State::Speed => Target::Speed { curve: curve()?, is_signed_by_gear },
            State::SteeringAngle => Target::SteeringAngle(curve()?),
            State::AccelerationAlong => Target::AccelerationAlong(curve()?),
            State::AccelerationAcross => Target::AccelerationAcross(curve()?),
            State::Charge => Target::Charge(curve()?),
            State::Gear => gear(signal, received)?,
        });
    }
    let condition = condition(signal, received)?;
    if let Some(name) = notice {
        return match member("notice", name)? {
            Notice::GuardSilent => Err("the adapter itself gives the notice guard_silent".into()),
            notice => Ok(Target::Notice(notice, condition)),
        };
    }
    if let Some(name) = fault {
        return Ok(Target::Fault(member("fault", name)?, condition));
    }
    let name = light.as_deref().unwrap_or_default();
    let names = Action::of_car().map(|lamp| key(&lamp));
    let light = names.iter().position(|its| its == name);
    let light = light.ok_or_else(|| {
        let names = names.iter().map(|name| &**name);
        format!("there is no signal {name:?}: {}", nearest(name, names))
    })?;
    Ok(Target::Light(light as u8, condition))
}

/// Fails if the map gives a field that has no meaning for this use of a signal.
fn unused(received: &Received) -> Result<(), String> {
    let Received { state, .. } = received;
    let is_gear = *state == Some(State::Gear);
    let is_number = state.is_some() && !is_gear;
    let refused = [
        ("scale", received.scale.is_some() && !is_number),
        ("offset", received.offset.is_some() && !is_number),
        ("points", received.points.is_some() && !is_number),
        ("is", received.is.is_some() && (is_number || is_gear)),
        ("above", received.above.is_some() && (is_number || is_gear)),
        ("below", received.below.is_some() && (is_number || is_gear)),
        ("values", received.values.is_some() && !is_gear),
        ("signed_by_gear", received.signed_by_gear && *state != Some(State::Speed)),
    ];
    match refused.iter().find(|(_, is_refused)| *is_refused) {
        Some((name, _)) => Err(format!("{name} has no meaning here: leave it out")),
        None => Ok(()),
    }
}

fn gear(signal: &Signal, received: &Received) -> Result<Target, String> {
    let values = received.values.as_ref();
    let values = values.ok_or("values = { drive = .., reverse = .., neither = .. } is missing")?;
    let known = ["drive", "reverse", "neither"];
    if let Some(name) = values.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("values has no {name}: {}", nearest(name, known)));
    }
    let of = |name: &str| values.get(name).map_or(Ok(Vec::new()), |values| bits(signal, values));
    let (drive, reverse, neither) = (of("drive")?, of("reverse")?, of("neither")?);
    match drive.is_empty() {
        true => Err("values names no drive".into()),
        false => Ok(Target::Gear { drive, reverse, neither }),
    }
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

/// Returns the member of a set by its name in a map: `local_stop` for `LocalStop`.
fn member<E: Member>(what: &str, name: &str) -> Result<E, String> {
    let known: Vec<(String, E)> = E::ALL.iter().map(|it| (snake(*it), *it)).collect();
    let found = known.iter().find(|(its, _)| its == name).map(|(_, member)| *member);
    let names = known.iter().map(|(name, _)| &**name);
    found.ok_or_else(|| format!("there is no {what} {name:?}: {}", nearest(name, names)))
}

/// Returns the name that a car's action has in a map: `high_beam` for "high beam".
pub(crate) fn key(lamp: &Action) -> String {
    lamp.name.as_str().replace(' ', "_")
}

/// Returns the name that a variant has in a map: `local_stop` for `LocalStop`.
pub(crate) fn snake(member: impl std::fmt::Debug) -> String {
    let mut snake = String::new();
    for (index, letter) in format!("{member:?}").chars().enumerate() {
        if letter.is_uppercase() && index > 0 {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// Number of a message's periods without a frame after which the message counts as lost, unless the
/// map has a timeout.
const PERIODS: u64 = 5;
const TIMEOUT_MS_MAX: u64 = 10_000;
/// Number of mismatches of checksum or counter, less one for each matching frame, at which a
/// message counts as lost, unless the map has a number: as in comma's panda.
const MISMATCH_MAX: u32 = 5;

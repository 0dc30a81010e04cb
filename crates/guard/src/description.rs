//! Declarations of a machine: its axes, actions and values, each with a name.

use core::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::set::numbered;

/// A short text of at most `N` bytes of UTF-8, stored without allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Text<const N: usize> {
    length: u8,
    bytes: [u8; N],
}

/// Name of an axis, an action or a value: 1 to 24 bytes.
pub type Name = Text<24>;
/// Unit of an axis or a value, such as `rad` or `V`: at most 12 bytes, empty for a bare number.
pub type Unit = Text<12>;

impl<const N: usize> Text<N> {
    /// Creates a text; `None` if it is longer than `N` bytes or has a control character.
    pub fn new(text: &str) -> Option<Self> {
        if text.len() > N.min(u8::MAX.into()) || text.chars().any(char::is_control) {
            return None;
        }
        let mut bytes = [0; N];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Some(Self { length: text.len() as u8, bytes })
    }

    /// Creates a text from bytes as they are sent: UTF-8, with zeros behind it; `None` if they are
    /// anything else.
    pub fn from_padded(bytes: &[u8; N]) -> Option<Self> {
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(N);
        let (said, rest) = bytes.split_at(length);
        let text = core::str::from_utf8(said).ok()?;
        rest.iter().all(|byte| *byte == 0).then(|| Self::new(text))?
    }

    /// Returns the bytes as they are sent: UTF-8, with zeros behind it.
    pub fn padded(&self) -> &[u8; N] {
        &self.bytes
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.length.into()]).expect("it was made of a text")
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self { length: 0, bytes: [0; N] }
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<const N: usize> Serialize for Text<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de, const N: usize> Deserialize<'de> for Text<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&str>::deserialize(deserializer)?;
        Self::new(text).ok_or_else(|| D::Error::custom("a text that is too long"))
    }
}

/// An axis of a machine in addition to its motion, such as a boom, a gripper or a camera's tilt.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Axis {
    /// Name for people.
    pub name: Name,
    /// Unit of the axis's set point and limits.
    pub unit: Unit,
    /// Limits by which the guard judges the axis's set point.
    pub rule: AxisRule,
}

/// The part of an axis's declaration by which the guard limits its set point.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct AxisRule {
    /// Meaning of the set point.
    pub form: AxisForm,
    /// Least set point.
    pub low: f32,
    /// Greatest set point.
    pub high: f32,
    /// Largest change of the set point, units per second.
    pub rate: f32,
    /// Set point during a stop and while the machine is held.
    pub on_stop: AxisStop,
}

numbered! {
    /// Meaning of an axis's set point.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
    pub enum AxisForm {
        /// A position, which the axis moves to and holds.
        #[default]
        Position = 0,
        /// A speed, with which the axis moves.
        Speed = 1,
    }
}

/// Set point of an axis during a stop and while the machine is held.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum AxisStop {
    /// The set point stays. Only for a position: a speed would go on moving the axis.
    Hold,
    /// The set point goes to 0, at the axis's rate.
    Zero,
    /// The set point goes to this value, at the axis's rate.
    Value(f32),
    /// There is no set point: the machine releases the actuator.
    Release,
}

/// An action of a machine that a person can ask for, such as its horn or a return to its dock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Action {
    /// Name for people.
    pub name: Name,
    /// Way in which a person asks for the action, and what a stop does to it.
    pub rule: ActionRule,
}

/// The part of an action's declaration by which the guard decides whether it is on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ActionRule {
    /// Way in which a person asks for the action.
    pub form: ActionForm,
    /// Effect of a stop on the action; no meaning for a request.
    pub on_stop: ActionStop,
    /// `true` if a person may also ask for the action while the machine is held.
    pub is_allowed_held: bool,
}

impl Action {
    /// Number of a car's horn among [`of_car`](Self::of_car).
    pub const HORN: u8 = 0;
    /// Number of a car's lights for driving.
    pub const LIGHTS: u8 = 1;
    /// Number of a car's high beam.
    pub const HIGH_BEAM: u8 = 2;
    /// Number of a car's left indicator.
    pub const LEFT: u8 = 3;
    /// Number of a car's right indicator.
    pub const RIGHT: u8 = 4;
    /// Number of a car's hazard lights.
    pub const HAZARD: u8 = 5;

    /// Returns the lights and the horn of a car, in the order of their numbers: horn, lights, high
    /// beam, left, right, hazard.
    pub fn of_car() -> [Self; 6] {
        let lamp = |name, form, on_stop| Self {
            name: Name::new(name).expect("at most 24 bytes"),
            rule: ActionRule { form, on_stop, is_allowed_held: true },
        };
        [
            lamp("horn", ActionForm::Momentary, ActionStop::Off),
            lamp("lights", ActionForm::Switch, ActionStop::Keep),
            lamp("high beam", ActionForm::Switch, ActionStop::Keep),
            lamp("left", ActionForm::Switch, ActionStop::Off),
            lamp("right", ActionForm::Switch, ActionStop::Off),
            lamp("hazard", ActionForm::Switch, ActionStop::On),
        ]
    }
}

numbered! {
    /// Way in which a person asks for an action.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
    pub enum ActionForm {
        /// The action is on while a person holds it down.
        #[default]
        Momentary = 0,
        /// A person switches the action on and off.
        Switch = 1,
        /// A person asks for the action once, and the machine accepts or refuses.
        Request = 2,
    }
}

numbered! {
    /// State of an action from the begin of a stop until the machine is armed again. A person who
    /// may ask for the action while the machine is held decides instead, but cannot end an action
    /// that a fault has switched on.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
    pub enum ActionStop {
        /// The action is off.
        #[default]
        Off = 0,
        /// A switched action stays as it was; another one is off.
        Keep = 1,
        /// The action is on if the stop is due to a fault, as hazard lights are; otherwise as with
        /// `Keep`.
        On = 2,
    }
}

/// A value that a machine reports for people, such as a temperature or the name of its gear.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ValueInfo {
    /// Name for people.
    pub name: Name,
    /// Unit; empty for a text.
    pub unit: Unit,
    /// Kind of the value.
    pub form: ValueForm,
    /// Least and greatest possible number; NaN where there is none.
    pub range: [f32; 2],
    /// Numbers below and above which a person is warned; NaN where there is none.
    pub warning: [f32; 2],
    /// Numbers below and above which a person is alarmed; NaN where there is none.
    pub alarm: [f32; 2],
}

numbered! {
    /// Kind of a value.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
    pub enum ValueForm {
        /// A number.
        #[default]
        Number = 0,
        /// A text of at most 64 bytes.
        Text = 1,
    }
}

/// Newest reading of a value.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Reading {
    /// A number in the value's unit; NaN if it is not known.
    Number(f32),
    /// A text.
    Text(Text<64>),
}

/// One declaration of a description.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Item {
    /// An axis.
    Axis(Axis),
    /// An action.
    Action(Action),
    /// A value.
    Value(ValueInfo),
}

/// Maximum number of axes of a machine.
pub const AXES_MAX: usize = 16;
/// Maximum number of actions of a machine.
pub const ACTIONS_MAX: usize = 32;
/// Maximum number of values of a machine.
pub const VALUES_MAX: usize = 64;

/// Number of axes, actions and values that a machine declares.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
pub struct Counts {
    /// Number of axes, at most [`AXES_MAX`].
    pub axes: u8,
    /// Number of actions, at most [`ACTIONS_MAX`].
    pub actions: u8,
    /// Number of values, at most [`VALUES_MAX`].
    pub values: u8,
}

impl Counts {
    /// Returns whether no number exceeds its maximum.
    pub fn is_possible(self) -> bool {
        let Self { axes, actions, values } = self;
        usize::from(axes) <= AXES_MAX
            && usize::from(actions) <= ACTIONS_MAX
            && usize::from(values) <= VALUES_MAX
    }

    /// Returns how many items a description with these counts has.
    pub fn items(self) -> usize {
        usize::from(self.axes) + usize::from(self.actions) + usize::from(self.values)
    }
}

/// One item of a description as a frame carries it: with what identifies the description.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Number that all entries of one description have in common; another one if any item differs.
    pub revision: Revision,
    /// Numbers of items, by kind, of the whole description.
    pub counts: Counts,
    /// Number of the item among those of its kind, from 0.
    pub index: u8,
    /// The item.
    pub item: Item,
}

/// Identity of a description: a checksum of its items, never 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Revision(core::num::NonZeroU32);

impl Revision {
    /// Returns the revision with this number; `None` for 0.
    pub const fn new(number: u32) -> Option<Self> {
        match core::num::NonZeroU32::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// Returns the number.
    pub const fn get(self) -> u32 {
        self.0.get()
    }

    /// Returns the number on the wire, where 0 is none.
    pub fn to_wire(this: Option<Self>) -> u32 {
        this.map_or(0, Self::get)
    }
}

/// Counts the items of a description and checks each.
///
/// # Errors
/// The index of the first item that cannot be declared, and its [`Flaw`].
pub fn counts(items: &[Item]) -> Result<Counts, (usize, Flaw)> {
    let mut counts = Counts::default();
    for (index, item) in items.iter().enumerate() {
        item.check().map_err(|flaw| (index, flaw))?;
        let (count, most, behind) = match item {
            Item::Axis(_) => (&mut counts.axes, AXES_MAX, counts.actions + counts.values),
            Item::Action(_) => (&mut counts.actions, ACTIONS_MAX, counts.values),
            Item::Value(_) => (&mut counts.values, VALUES_MAX, 0),
        };
        if behind > 0 {
            return Err((index, Flaw::Order));
        }
        if usize::from(*count) == most {
            return Err((index, Flaw::TooMany));
        }
        *count += 1;
    }
    Ok(counts)
}

impl AxisRule {
    /// Checks the range, the rate, and the set point in a stop.
    ///
    /// # Errors
    /// [`Flaw`], the first one found.
    pub fn check(&self) -> Result<(), Flaw> {
        let Self { form, low, high, rate, on_stop } = *self;
        let is_number = |value: f32| value.is_finite();
        if !(is_number(low) && is_number(high) && low < high) {
            return Err(Flaw::Range);
        }
        if !(is_number(rate) && rate > 0.0) {
            return Err(Flaw::Rate);
        }
        let is_inside = |value: f32| (low..=high).contains(&value);
        match (form, on_stop) {
            (AxisForm::Speed, AxisStop::Hold) => Err(Flaw::HeldSpeed),
            (AxisForm::Speed, _) if !is_inside(0.0) => Err(Flaw::NoStandstill),
            (AxisForm::Speed, AxisStop::Value(value)) if value != 0.0 => Err(Flaw::HeldSpeed),
            (_, AxisStop::Zero) if !is_inside(0.0) => Err(Flaw::StopValue),
            (_, AxisStop::Value(value)) if !is_inside(value) => Err(Flaw::StopValue),
            _ => Ok(()),
        }
    }
}

/// A mistake in a declaration.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Flaw {
    /// The name is empty.
    NoName,
    /// The range is not two finite numbers, the lower first.
    Range,
    /// The rate is not a finite number above 0.
    Rate,
    /// A stop would leave the axis moving: a speed other than 0 is held.
    HeldSpeed,
    /// The range of a speed excludes 0.
    NoStandstill,
    /// The set point of a stop lies outside of the range.
    StopValue,
    /// An axis follows an action or a value, or an action a value.
    Order,
    /// There are more than 16 axes, 32 actions or 64 values.
    TooMany,
    /// A text has limits, or limits of a number cross: each pair has the lower number first, and
    /// an alarm lies beyond its warning.
    Limits,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoName => "it needs a name",
            Self::Range => "its range must be two finite numbers, the lower first",
            Self::Rate => "its rate must be a finite number above 0",
            Self::HeldSpeed => "a stop must not leave an axis moving: on_stop = zero or release",
            Self::NoStandstill => "the range of a speed must include 0",
            Self::StopValue => "the set point of a stop must lie in its range",
            Self::Order => "axes come first, then actions, then values",
            Self::TooMany => "a machine has at most 16 axes, 32 actions and 64 values",
            Self::Limits => "limits need the lower number first, and alarms beyond warnings",
        })
    }
}

impl core::error::Error for Flaw {}

impl Item {
    /// Returns the item's name.
    pub fn name(&self) -> &Name {
        match self {
            Self::Axis(axis) => &axis.name,
            Self::Action(action) => &action.name,
            Self::Value(value) => &value.name,
        }
    }

    /// Checks the name, and the rule of an axis or the limits of a value.
    ///
    /// # Errors
    /// [`Flaw`], the first one found.
    pub fn check(&self) -> Result<(), Flaw> {
        if self.name().as_str().is_empty() {
            return Err(Flaw::NoName);
        }
        match self {
            Self::Axis(axis) => axis.rule.check(),
            Self::Action(_) => Ok(()),
            Self::Value(value) => value.check(),
        }
    }
}

impl ValueInfo {
    fn check(&self) -> Result<(), Flaw> {
        let Self { form, range, warning, alarm, .. } = *self;
        let all = [range, warning, alarm];
        if form == ValueForm::Text && all.iter().flatten().any(|limit| !limit.is_nan()) {
            return Err(Flaw::Limits);
        }
        // A comparison with NaN is false, so a limit that is missing crosses no other.
        let crosses = |[low, high]: [f32; 2]| low > high;
        let is_inside = alarm[0] > warning[0] || alarm[1] < warning[1];
        let flawed = all.into_iter().any(crosses) || is_inside;
        if flawed { Err(Flaw::Limits) } else { Ok(()) }
    }

    /// Returns the severity of a number for a person.
    pub fn severity(&self, number: f32) -> Severity {
        let is_beyond = |[low, high]: [f32; 2]| number < low || number > high;
        match () {
            () if is_beyond(self.alarm) => Severity::Alarm,
            () if is_beyond(self.warning) => Severity::Warning,
            () => Severity::Normal,
        }
    }
}

/// Severity of a number for a person.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// Within all limits, or not known.
    Normal,
    /// Beyond a limit of warning.
    Warning,
    /// Beyond a limit of alarm.
    Alarm,
}

#[cfg(test)]
mod tests;

use std::fmt;

use tautline_guard::description::Action;
use tautline_guard::{Controls, Gear};

use crate::curve::Curve;

/// One of the guard's controls, which a sent signal can follow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Control {
    Steering,
    Throttle,
    Brake,
    Gear,
    ParkingBrake,
    Horn,
    Lights,
    HighBeam,
    Left,
    Right,
    Hazard,
    /// Left indicator, right indicator and hazard lights as one value.
    Indicators,
}

/// One control with the curve by which it adds to a signal's value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Term {
    pub(crate) control: Control,
    pub(crate) curve: Curve,
}

impl Control {
    /// All controls by their names in a map.
    pub(crate) const NAMES: [(&str, Self); 12] = [
        ("steering", Self::Steering),
        ("throttle", Self::Throttle),
        ("brake", Self::Brake),
        ("gear", Self::Gear),
        ("parking_brake", Self::ParkingBrake),
        ("horn", Self::Horn),
        ("lights", Self::Lights),
        ("high_beam", Self::HighBeam),
        ("left", Self::Left),
        ("right", Self::Right),
        ("hazard", Self::Hazard),
        ("indicators", Self::Indicators),
    ];

    /// Returns the names of the control's values in the order of their numbers, from 0; an empty
    /// list for a ratio.
    pub(crate) fn values(self) -> &'static [&'static str] {
        match self {
            Self::Steering | Self::Throttle | Self::Brake => &[],
            Self::Gear => &["drive", "reverse"],
            Self::Indicators => &["off", "left", "right", "both"],
            Self::ParkingBrake
            | Self::Horn
            | Self::Lights
            | Self::HighBeam
            | Self::Left
            | Self::Right
            | Self::Hazard => &["off", "on"],
        }
    }

    /// Returns the control as a number: a ratio, or the index of its value.
    pub(crate) fn number(self, controls: &Controls) -> f64 {
        let on = |lamp| f64::from(u8::from(controls.actions.contains(lamp)));
        match self {
            Self::Steering => controls.steering.into(),
            Self::Throttle => controls.throttle.into(),
            Self::Brake => controls.brake.into(),
            Self::Gear => match controls.gear {
                Gear::Drive => 0.0,
                Gear::Reverse => 1.0,
            },
            Self::ParkingBrake => f64::from(u8::from(controls.parking_brake)),
            Self::Horn => on(Action::HORN),
            Self::Lights => on(Action::LIGHTS),
            Self::HighBeam => on(Action::HIGH_BEAM),
            Self::Left => on(Action::LEFT),
            Self::Right => on(Action::RIGHT),
            Self::Hazard => on(Action::HAZARD),
            Self::Indicators if on(Action::HAZARD) == 1.0 => 3.0,
            Self::Indicators => on(Action::LEFT).max(2.0 * on(Action::RIGHT)),
        }
    }
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, control)| control == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

impl Term {
    /// Returns the number that the term adds to the signal's value under `controls`.
    pub(crate) fn value(&self, controls: &Controls) -> f64 {
        self.curve.at(self.control.number(controls))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_control_is_a_number() {
        let actions = [Action::LEFT, Action::HORN].into_iter().collect();
        let controls = Controls {
            steering: -0.5,
            throttle: 0.25,
            brake: 1.0,
            gear: Gear::Reverse,
            parking_brake: true,
            actions,
            ..Controls::default()
        };
        let numbers = Control::NAMES.map(|(_, control)| control.number(&controls));
        assert_eq!(numbers, [-0.5, 0.25, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
        let of = |signal| {
            let controls = Controls { actions: [signal].into_iter().collect(), ..controls };
            Control::Indicators.number(&controls)
        };
        assert_eq!(
            [Action::HORN, Action::LEFT, Action::RIGHT, Action::HAZARD].map(of),
            [0., 1., 2., 3.]
        );
        assert_eq!(Control::HighBeam.to_string(), "high_beam");
    }
}

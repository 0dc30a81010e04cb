use tautline_guard::{Controls, Gear};

use crate::curve::Curve;

/// One of the guard's controls, or a declared axis or action by its number, which a sent signal can
/// follow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Control {
    Steering,
    Throttle,
    Brake,
    Gear,
    ParkingBrake,
    /// Speed along the machine in m/s.
    Forward,
    /// Speed to the left in m/s.
    Sideways,
    /// Rate of turn in rad/s, counterclockwise positive.
    YawRate,
    /// Set point of an axis, in its unit; NaN without one.
    Axis(u8),
    /// On while the axis has a set point.
    IsSet(u8),
    /// State of a momentary or switched action.
    Action(u8),
    /// On from the request of an action until its answer.
    Request(u8),
    /// Left indicator, right indicator and hazard lights as one value, by their actions.
    Indicators {
        left: u8,
        right: u8,
        hazard: u8,
    },
}

/// Controls of the guard, and the action that a person asks for once.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct Commanded {
    pub(crate) controls: Controls,
    /// Number of the requested action; `None` if none is requested.
    pub(crate) request: Option<u8>,
}

/// One control with the curve by which it adds to a signal's value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Term {
    /// Name of the control in the map.
    pub(crate) name: String,
    pub(crate) control: Control,
    pub(crate) curve: Curve,
}

impl Control {
    /// The controls of motion by their names in a map.
    pub(crate) const NAMES: [(&str, Self); 8] = [
        ("steering", Self::Steering),
        ("throttle", Self::Throttle),
        ("brake", Self::Brake),
        ("gear", Self::Gear),
        ("parking_brake", Self::ParkingBrake),
        ("forward", Self::Forward),
        ("sideways", Self::Sideways),
        ("yaw_rate", Self::YawRate),
    ];

    /// Returns the names of the control's values in the order of their numbers, from 0; an empty
    /// list for a number.
    pub(crate) fn values(self) -> &'static [&'static str] {
        match self {
            Self::Steering
            | Self::Throttle
            | Self::Brake
            | Self::Forward
            | Self::Sideways
            | Self::YawRate
            | Self::Axis(_) => &[],
            Self::Gear => &["drive", "reverse"],
            Self::Indicators { .. } => &["off", "left", "right", "both"],
            Self::ParkingBrake | Self::IsSet(_) | Self::Action(_) | Self::Request(_) => {
                &["off", "on"]
            }
        }
    }

    /// Returns the control as a number: itself, or the index of its value; NaN for an axis without
    /// a set point.
    pub(crate) fn number(self, commanded: &Commanded) -> f64 {
        let Commanded { controls, request } = commanded;
        let number = |is_on| f64::from(u8::from(is_on));
        let on = |action| controls.actions.contains(action);
        let axis = |axis: u8| controls.axes.0[usize::from(axis)];
        match self {
            Self::Steering => controls.steering.into(),
            Self::Throttle => controls.throttle.into(),
            Self::Brake => controls.brake.into(),
            Self::Gear => number(controls.gear == Gear::Reverse),
            Self::ParkingBrake => number(controls.parking_brake),
            Self::Forward => controls.twist.forward.into(),
            Self::Sideways => controls.twist.sideways.into(),
            Self::YawRate => controls.twist.yaw_rate.into(),
            Self::Axis(index) => axis(index).into(),
            Self::IsSet(index) => number(!axis(index).is_nan()),
            Self::Action(action) => number(on(action)),
            Self::Request(action) => number(*request == Some(action)),
            Self::Indicators { hazard, .. } if on(hazard) => 3.0,
            Self::Indicators { left, right, .. } => number(on(left)).max(2.0 * number(on(right))),
        }
    }
}

impl Term {
    /// Returns the number that the term adds to the signal's value; NaN for an axis without a set
    /// point.
    pub(crate) fn value(&self, commanded: &Commanded) -> f64 {
        let number = self.control.number(commanded);
        if number.is_nan() { number } else { self.curve.at(number) }
    }
}

#[cfg(test)]
mod tests {
    use tautline_guard::{Axes, Twist};

    use super::*;

    #[test]
    fn every_control_is_a_number() {
        let mut axes = Axes::NONE;
        axes.0[1] = 0.75;
        let controls = Controls {
            steering: -0.5,
            throttle: 0.25,
            brake: 1.0,
            gear: Gear::Reverse,
            parking_brake: true,
            twist: Twist { forward: 1.5, sideways: -0.5, yaw_rate: 2.0 },
            axes,
            actions: [3, 5].into_iter().collect(),
        };
        let of = |control: Control, request| control.number(&Commanded { controls, request });
        let numbers = Control::NAMES.map(|(_, control)| of(control, None));
        assert_eq!(numbers, [-0.5, 0.25, 1.0, 1.0, 1.0, 1.5, -0.5, 2.0]);
        assert!(of(Control::Axis(0), None).is_nan());
        assert_eq!((of(Control::IsSet(0), None), of(Control::Axis(1), None)), (0.0, 0.75));
        assert_eq!(of(Control::IsSet(1), None), 1.0);
        assert_eq!([2, 3].map(|action| of(Control::Action(action), None)), [0.0, 1.0]);
        assert_eq!([None, Some(4)].map(|request| of(Control::Request(4), request)), [0.0, 1.0]);
        let indicators =
            |left, right, hazard| of(Control::Indicators { left, right, hazard }, None);
        let all = [(0, 1, 2), (3, 1, 2), (0, 3, 2), (0, 1, 3)];
        assert_eq!(
            all.map(|(left, right, hazard)| indicators(left, right, hazard)),
            [0.0, 1.0, 2.0, 3.0]
        );
    }

    #[test]
    fn a_curve_of_an_axis_without_a_set_point_is_nan() {
        for curve in
            [Curve::Line { scale: 2.0, offset: 1.0 }, Curve::Points(vec![(0.0, 0.0), (1.0, 5.0)])]
        {
            let term = Term { name: "boom".into(), control: Control::Axis(0), curve };
            assert!(term.value(&Commanded::default()).is_nan());
        }
    }
}

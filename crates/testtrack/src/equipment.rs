use std::time::Duration;

use tautline_guard::description::{
    AXES_MAX, Action, ActionForm, ActionRule, ActionStop, Axis, AxisForm, AxisRule, AxisStop, Item,
    Name, Reading, Text, Unit, ValueForm, ValueInfo,
};
use tautline_guard::{Actions, Axes, Controls};

use crate::kind::Kind;

/// Everything of a simulated machine but its motion: lights and horn, axes, values.
///
/// An axis follows its set point at once, as far as its greatest speed allows. Without a set point
/// it stays where it is.
#[derive(Debug)]
pub(crate) struct Equipment {
    items: Vec<Item>,
    /// Position of each axis of a position, speed of each axis of a speed; NaN beyond the last.
    axes: [f32; AXES_MAX],
    actions: Actions,
    /// Number of declared values.
    values: u8,
    /// Number of the value that is reported next; equal to `values` while no report is due.
    next: u8,
    /// Time since the newest reports of the values began.
    since: Duration,
    is_docked: bool,
}

impl Equipment {
    /// Returns the equipment of a machine of this kind: with everything off, and each axis in the
    /// middle of its range or at standstill.
    pub(crate) fn new(kind: Kind) -> Self {
        let items = items(kind);
        let mut axes = [f32::NAN; AXES_MAX];
        let rules = items.iter().filter_map(rule);
        for (axis, rule) in axes.iter_mut().zip(rules) {
            *axis = match rule.form {
                AxisForm::Position => 0.0_f32.clamp(rule.low, rule.high),
                AxisForm::Speed => 0.0,
            };
        }
        let values = items.iter().filter(|item| matches!(item, Item::Value(_))).count() as u8;
        Self {
            items,
            axes,
            actions: Actions::NONE,
            values,
            next: values,
            since: REPORTED_EVERY,
            is_docked: false,
        }
    }

    pub(crate) fn items(&self) -> &[Item] {
        &self.items
    }

    pub(crate) fn axes(&self) -> Axes {
        Axes(self.axes)
    }

    pub(crate) fn actions(&self) -> Actions {
        self.actions
    }

    /// Takes the actions of these controls as those that are on, and moves the axes for `passed`
    /// under them.
    pub(crate) fn step(&mut self, controls: &Controls, passed: Duration) {
        self.actions = controls.actions;
        self.since += passed;
        for (number, rule) in self.items.iter().filter_map(rule).enumerate() {
            let (wanted, axis) = (controls.axes.0[number], &mut self.axes[number]);
            let target = match rule.form {
                AxisForm::Position if wanted.is_nan() => *axis,
                AxisForm::Speed if wanted.is_nan() => 0.0,
                AxisForm::Position | AxisForm::Speed => wanted.clamp(rule.low, rule.high),
            };
            let most = SPEED * (rule.high - rule.low) * passed.as_secs_f32();
            *axis += (target - *axis).clamp(-most, most);
        }
    }

    /// Begins the requested action: a machine that stands docks, or leaves its dock. Returns
    /// whether it does; one that moves refuses.
    pub(crate) fn request(&mut self, stands: bool) -> bool {
        self.is_docked ^= stands;
        stands
    }

    /// Returns the next reading of a value that is due, with the value's number; `None` if none is.
    /// All are due twice a second. `charge` is the battery's, as a share.
    pub(crate) fn reading(&mut self, charge: f64, speed: f32) -> Option<(u8, Reading)> {
        if self.next == self.values {
            if self.since < REPORTED_EVERY || self.values == 0 {
                return None;
            }
            (self.next, self.since) = (0, Duration::ZERO);
        }
        let index = self.next;
        self.next += 1;
        let reading = match index {
            0 => Reading::Number(EMPTY + (FULL - EMPTY) * charge as f32),
            1 => Reading::Number(AMBIENT + HEATING * speed.abs()),
            _ => {
                let text = if self.is_docked { "docked" } else { "undocked" };
                Reading::Text(Text::new(text).expect("at most 64 bytes"))
            }
        };
        Some((index, reading))
    }
}

fn rule(item: &Item) -> Option<&AxisRule> {
    match item {
        Item::Axis(Axis { rule, .. }) => Some(rule),
        Item::Action(_) | Item::Value(_) => None,
    }
}

/// Returns the declarations of a machine of this kind.
fn items(kind: Kind) -> Vec<Item> {
    let position = |name, [low, high]: [f32; 2], rate, on_stop| {
        let rule = AxisRule { form: AxisForm::Position, low, high, rate, on_stop };
        Item::Axis(Axis { name: named(name), unit: unit("rad"), rule })
    };
    let axes = match kind {
        Kind::Car => vec![],
        Kind::Robot => vec![
            position("pan", [-1.5, 1.5], 1.5, AxisStop::Hold),
            position("tilt", [-0.7, 0.7], 1.5, AxisStop::Hold),
        ],
        Kind::Rover => {
            let rule = AxisRule {
                form: AxisForm::Speed,
                low: -0.2,
                high: 0.2,
                rate: 0.4,
                on_stop: AxisStop::Zero,
            };
            vec![
                position("boom", [-0.4, 1.2], 0.5, AxisStop::Hold),
                position("bucket", [-0.8, 0.8], 0.8, AxisStop::Hold),
                Item::Axis(Axis { name: named("winch"), unit: unit("m/s"), rule }),
            ]
        }
        Kind::Cart => vec![position("gripper", [0.0, 0.1], 0.1, AxisStop::Hold)],
    };
    let lamps = Action::of_car().map(Item::Action);
    let dock =
        ActionRule { form: ActionForm::Request, on_stop: ActionStop::Off, is_allowed_held: false };
    let dock = Item::Action(Action { name: named("dock"), rule: dock });
    let value = |name, its, form, range, warning, alarm| {
        let (name, unit) = (named(name), unit(its));
        Item::Value(ValueInfo { name, unit, form, range, warning, alarm })
    };
    let none = [f32::NAN; 2];
    let number = ValueForm::Number;
    let values = vec![
        value("battery", "V", number, [EMPTY, FULL], [22.8, f32::NAN], [22.0, f32::NAN]),
        value("motors", "°C", number, [-40.0, 120.0], [f32::NAN, 70.0], [f32::NAN, 90.0]),
        value("dock state", "", ValueForm::Text, none, none, none),
    ];
    match kind {
        Kind::Car => lamps.into_iter().collect(),
        Kind::Robot | Kind::Rover | Kind::Cart => {
            axes.into_iter().chain(lamps).chain([dock]).chain(values).collect()
        }
    }
}

fn named(name: &str) -> Name {
    Name::new(name).expect("at most 24 bytes")
}

fn unit(unit: &str) -> Unit {
    Unit::new(unit).expect("at most 12 bytes")
}

/// Greatest speed of an axis, as a share of its range a second: it follows any declared rate.
const SPEED: f32 = 4.0;
/// Time between two reports of a value.
const REPORTED_EVERY: Duration = Duration::from_millis(500);
/// Number of a robot's requested action: the one behind a car's lights and horn.
pub(crate) const DOCK: u8 = 6;
/// Voltage of an empty battery of seven cells of lithium iron phosphate, V.
const EMPTY: f32 = 21.0;
/// Voltage of the same battery when full, V.
const FULL: f32 = 25.5;
/// Temperature of motors at rest, °C.
const AMBIENT: f32 = 24.0;
/// Rise of the motors' temperature for each m/s of speed, °C.
const HEATING: f32 = 12.0;

#[cfg(test)]
mod tests {
    use tautline_guard::description::counts;

    use super::*;

    #[test]
    fn every_kind_declares_what_a_guard_accepts() {
        for kind in Kind::ALL {
            let equipment = Equipment::new(kind);
            let counts = counts(equipment.items()).unwrap();
            assert_eq!(counts.values > 0, kind != Kind::Car, "{kind:?}");
            let number = usize::from(counts.axes) + usize::from(DOCK);
            let dock = equipment.items().get(number);
            let is_dock = |item: &Item| item.name().as_str() == "dock";
            assert_eq!(dock.is_some_and(is_dock), kind != Kind::Car);
        }
    }

    #[test]
    fn an_axis_follows_its_set_point_and_stays_without_one() {
        let mut equipment = Equipment::new(Kind::Rover);
        let mut controls = Controls::default();
        controls.axes.0[..3].copy_from_slice(&[1.0, 9.0, 0.1]);
        equipment.step(&controls, Duration::from_secs(1));
        assert_eq!(equipment.axes().0[..3], [1.0, 0.8, 0.1]);
        equipment.step(&Controls::default(), Duration::from_secs(1));
        assert_eq!(equipment.axes().0[..3], [1.0, 0.8, 0.0]);
        assert!(equipment.axes().0[3..].iter().all(|axis| axis.is_nan()));
    }

    #[test]
    fn values_are_reported_twice_a_second_and_the_dock_by_name() {
        let mut equipment = Equipment::new(Kind::Robot);
        let mut reported = || std::iter::from_fn(|| equipment.reading(0.5, 1.0)).count();
        assert_eq!((reported(), reported()), (3, 0));
        equipment.step(&Controls::default(), REPORTED_EVERY);
        assert!(!equipment.request(false) && equipment.request(true));
        let last = std::iter::from_fn(|| equipment.reading(0.5, 1.0)).last();
        assert_eq!(last, Some((2, Reading::Text(Text::new("docked").unwrap()))));
    }
}

use tautline_guard::description::{
    Action, ActionForm, ActionRule, ActionStop, Axis, AxisForm, AxisRule, AxisStop, Counts, Entry,
    Item, Name, Revision, Unit,
};
use tautline_guard::{Actions, Axes, Controls, MachineState};

/// Axes and an action of every machine: positions that a stop holds, moves to [`RETURNS_TO`] and
/// releases, a speed that it ends, and a switch that it turns off.
#[derive(Clone, Debug)]
pub(crate) struct Equipment {
    entries: [Entry; 5],
    next: usize,
}

impl Equipment {
    pub(crate) fn new() -> Self {
        let counts = Counts { axes: 4, actions: 1, values: 0 };
        let entry = |index, item| Entry { revision: REVISION, counts, index, item };
        let axis = |index, form, on_stop| {
            let rule = AxisRule { form, low: -1.0, high: 1.0, rate: 0.5, on_stop };
            let (name, unit) = (Name::new("axis").expect("short"), Unit::default());
            entry(index, Item::Axis(Axis { name, unit, rule }))
        };
        let rule = ActionRule {
            form: ActionForm::Switch,
            on_stop: ActionStop::Off,
            is_allowed_held: false,
        };
        let blade = Item::Action(Action { name: Name::new("blade").expect("short"), rule });
        let entries = [
            axis(0, AxisForm::Position, AxisStop::Hold),
            axis(1, AxisForm::Position, AxisStop::Value(RETURNS_TO)),
            axis(2, AxisForm::Position, AxisStop::Release),
            axis(3, AxisForm::Speed, AxisStop::Zero),
            entry(0, blade),
        ];
        Self { entries, next: 0 }
    }

    /// Returns the entry that the machine sends next.
    pub(crate) fn next(&mut self) -> Entry {
        let entry = self.entries[self.next];
        self.next = (self.next + 1) % self.entries.len();
        entry
    }
}

/// Returns a state with the equipment's.
pub(crate) fn equipped(state: MachineState) -> MachineState {
    let axes = Axes([0.0; 16]);
    MachineState { axes, description: Some(REVISION), ..state }
}

/// Returns controls of a person who moves every axis and has switched the blade on.
pub(crate) fn moved(controls: Controls) -> Controls {
    let axes = Axes([WANTED; 16]);
    Controls { axes, actions: Actions::from_bits(1), ..controls }
}

/// Returns whether axes and action have moved as the person wants.
pub(crate) fn is_moved(controls: &Controls) -> bool {
    controls.axes.0[..4] == [WANTED; 4] && controls.actions.contains(0)
}

/// Returns whether axes and action that had moved are as a stop leaves them.
pub(crate) fn is_stopped(controls: &Controls) -> bool {
    let [hold, value, release, speed, ..] = controls.axes.0;
    let is_still = hold == WANTED && value == RETURNS_TO && release.is_nan() && speed == 0.0;
    is_still && !controls.actions.contains(0)
}

const REVISION: Revision = match Revision::new(9) {
    Some(revision) => revision,
    None => panic!("not 0"),
};
/// Set point that a person wants of every axis.
const WANTED: f32 = 0.5;
/// Set point of the second axis after a stop.
const RETURNS_TO: f32 = -0.25;

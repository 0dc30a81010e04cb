use serde::{Deserialize, Serialize};

use crate::actions::{Actions, Stopped};
use crate::axes::Axes;
use crate::controls::Controls;
use crate::description::{
    ACTIONS_MAX, AXES_MAX, Action, ActionForm, ActionRule, Axis, AxisRule, Counts, Entry, Item,
    Revision,
};

/// Rules of a machine's axes and actions, from the description that the machine sends.
///
/// Entries are gathered until those of one revision are complete. That description replaces the
/// former one while the machine is held, and only then.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Declared {
    /// Newest complete description that was adopted; `None` before the first.
    adopted: Option<Rules>,
    /// Description that is being gathered; `None` before the first entry.
    gathered: Option<Rules>,
}

/// Rules of one description, as far as its entries have arrived.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Rules {
    revision: Revision,
    counts: Counts,
    axes: [Option<AxisRule>; AXES_MAX],
    actions: [Option<ActionRule>; ACTIONS_MAX],
}

impl Declared {
    /// Takes an entry. One that is impossible, such as an index beyond the declared number, is
    /// ignored; of two for the same item the first counts.
    pub(crate) fn hear(&mut self, entry: &Entry) {
        let Entry { revision, counts, index, item } = entry;
        if !counts.is_possible() || item.check().is_err() {
            return;
        }
        let is_same = |rules: &Rules| (rules.revision, rules.counts) == (*revision, *counts);
        if self.adopted.as_ref().is_some_and(is_same) {
            return;
        }
        if !self.gathered.as_ref().is_some_and(is_same) {
            self.gathered = Some(Rules::new(*revision, *counts));
        }
        let Some(rules) = &mut self.gathered else { return };
        let index = usize::from(*index);
        match item {
            Item::Axis(axis) if index < counts.axes.into() => {
                rules.axes[index].get_or_insert(axis.rule);
            }
            Item::Action(action) if index < counts.actions.into() => {
                rules.actions[index].get_or_insert(action.rule);
            }
            // Name and limits of a value concern people alone.
            Item::Axis(_) | Item::Action(_) | Item::Value(_) => {}
        }
    }

    /// Adopts the gathered description if it is complete. The caller does this while the machine
    /// is held.
    pub(crate) fn adopt(&mut self) {
        if let Some(rules) = self.gathered.take_if(|rules| rules.is_complete()) {
            self.adopted = Some(rules);
        }
    }

    /// Returns whether the adopted description is the one that the machine reports; true if it
    /// reports `None`, as it declares nothing.
    pub(crate) fn is_known(&self, reported: Option<Revision>) -> bool {
        reported.is_none_or(|revision| self.rules(Some(revision)).is_some())
    }

    /// Returns the rule of an action; `None` if the description that the machine reports does not
    /// have it.
    pub(crate) fn action(&self, number: u8, reported: Option<Revision>) -> Option<ActionRule> {
        *self.rules(reported)?.actions.get(usize::from(number))?
    }

    /// Returns the set points of all axes in a step of `seconds` after `last`. `wanted` are those
    /// of a person who drives, `None` during a stop and while the machine is held. There are none
    /// without the description that the machine reports.
    pub(crate) fn axes(
        &self,
        (reported, measured): (Option<Revision>, &Axes),
        last: &Axes,
        wanted: Option<&Axes>,
        seconds: f32,
    ) -> Axes {
        let Some(rules) = self.rules(reported) else { return Axes::NONE };
        let mut next = Axes::NONE;
        for (number, rule) in rules.axes.iter().enumerate() {
            let Some(rule) = rule else { continue };
            let wanted = wanted.map(|wanted| wanted.0[number]);
            next.0[number] = rule.step(last.0[number], wanted, measured.0[number], seconds);
        }
        next
    }

    /// Returns the actions that are on in a step; none without the description that the machine
    /// reports. `wanted` are those of the newest fresh command, `None` without one; `stopped` is
    /// `None` while the machine is armed or driven.
    pub(crate) fn actions(
        &self,
        reported: Option<Revision>,
        last: Actions,
        wanted: Option<Actions>,
        stopped: Option<Stopped>,
    ) -> Actions {
        let Some(rules) = self.rules(reported) else { return Actions::NONE };
        let is_on = |number: u8, rule: &ActionRule| {
            let wanted = wanted.map(|wanted| wanted.contains(number));
            rule.is_on(last.contains(number), wanted, stopped)
        };
        let numbered = (0..).zip(&rules.actions);
        numbered
            .filter(|(number, rule)| rule.as_ref().is_some_and(|rule| is_on(*number, rule)))
            .map(|(number, _)| number)
            .collect()
    }

    fn rules(&self, reported: Option<Revision>) -> Option<&Rules> {
        let reported = reported?;
        self.adopted.as_ref().filter(|rules| rules.revision == reported)
    }
}

impl Rules {
    fn new(revision: Revision, counts: Counts) -> Self {
        Self { revision, counts, axes: [None; AXES_MAX], actions: [None; ACTIONS_MAX] }
    }

    fn is_complete(&self) -> bool {
        let Counts { axes, actions, .. } = self.counts;
        self.axes[..usize::from(axes)].iter().all(Option::is_some)
            && self.actions[..usize::from(actions)].iter().all(Option::is_some)
    }
}

impl ActionRule {
    /// Returns whether the machine is asked for this action once, instead of switching it.
    pub(crate) fn is_request(&self) -> bool {
        self.form == ActionForm::Request
    }
}

/// Returns axes and actions `seconds` after `last` for a machine that brakes by itself: each as
/// `items` declare it for a stop. `was_driven` is `false` if no guard ever spoke to the machine.
pub fn left_alone(
    items: &[Item],
    last: &Controls,
    measured: &Axes,
    was_driven: bool,
    seconds: f32,
) -> (Axes, Actions) {
    let stopped = if was_driven { Stopped::ByFault } else { Stopped::Parked };
    let (mut axes, mut actions) = (Axes::NONE, Actions::NONE);
    let (mut axis, mut action) = (0_u8, 0_u8);
    for item in items {
        match item {
            Item::Axis(Axis { rule, .. }) if usize::from(axis) < AXES_MAX => {
                let number = usize::from(axis);
                axes.0[number] = rule.step(last.axes.0[number], None, measured.0[number], seconds);
                axis += 1;
            }
            Item::Action(Action { rule, .. }) if usize::from(action) < ACTIONS_MAX => {
                let is_on = rule.is_on(last.actions.contains(action), None, Some(stopped));
                actions = actions.with_if(action, is_on);
                action += 1;
            }
            Item::Axis(_) | Item::Action(_) | Item::Value(_) => {}
        }
    }
    (axes, actions)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::description::{ActionStop, AxisForm, AxisStop, Name, Unit, ValueForm, ValueInfo};

    const COUNTS: Counts = Counts { axes: 1, actions: 2, values: 1 };

    fn revision(number: u32) -> Revision {
        Revision::new(number).unwrap()
    }

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn boom(rate: f32) -> Item {
        let rule = AxisRule {
            form: AxisForm::Position,
            low: 0.0,
            high: 1.0,
            rate,
            on_stop: AxisStop::Hold,
        };
        Item::Axis(Axis { name: name("boom"), unit: Unit::new("rad").unwrap(), rule })
    }

    fn action(form: ActionForm) -> Item {
        let rule = ActionRule { form, on_stop: ActionStop::Keep, is_allowed_held: false };
        Item::Action(Action { name: name("lights"), rule })
    }

    fn entry(revision_number: u32, index: u8, item: Item) -> Entry {
        Entry { revision: revision(revision_number), counts: COUNTS, index, item }
    }

    fn declared(revision_number: u32) -> Declared {
        let mut declared = Declared::default();
        declared.hear(&entry(revision_number, 0, boom(0.5)));
        declared.hear(&entry(revision_number, 1, action(ActionForm::Request)));
        declared.adopt();
        assert!(!declared.is_known(Some(revision(revision_number))), "an action is missing");
        declared.hear(&entry(revision_number, 0, action(ActionForm::Switch)));
        declared.adopt();
        declared
    }

    #[test]
    fn a_description_counts_once_it_is_complete_and_reported() {
        let declared = declared(7);
        assert!(declared.is_known(Some(revision(7))) && declared.is_known(None));
        assert!(!declared.is_known(Some(revision(8))));
        assert!(declared.action(1, Some(revision(7))).is_some_and(|rule| rule.is_request()));
        let none = [declared.action(2, Some(revision(7))), declared.action(255, Some(revision(7)))];
        assert_eq!(none, [None, None]);
        assert_eq!(declared.action(1, None), None);
        let wanted = Actions::from_bits(u32::MAX);
        let on = declared.actions(Some(revision(7)), Actions::NONE, Some(wanted), None);
        assert_eq!(on, Actions::from_bits(1), "neither a request nor what is not declared");
        assert!(declared.actions(Some(revision(8)), wanted, Some(wanted), None).is_empty());
    }

    #[test]
    fn another_description_replaces_nothing_before_it_is_adopted() {
        let mut declared = declared(7);
        declared.hear(&entry(9, 0, boom(2.0)));
        declared.hear(&entry(9, 0, action(ActionForm::Switch)));
        declared.hear(&entry(9, 1, action(ActionForm::Switch)));
        assert!(declared.is_known(Some(revision(7))) && !declared.is_known(Some(revision(9))));
        declared.adopt();
        assert!(declared.is_known(Some(revision(9))) && !declared.is_known(Some(revision(7))));
    }

    #[test]
    fn the_first_declaration_of_an_item_counts() {
        let mut declared = declared(7);
        declared.hear(&entry(7, 0, boom(100.0)));
        declared.adopt();
        let (last, wanted) = (Axes([0.0; 16]), Axes([1.0; 16]));
        let next = declared.axes((Some(revision(7)), &Axes::NONE), &last, Some(&wanted), 0.01);
        assert!((next.0[0] - 0.005).abs() < 1e-6 && next.0[1..].iter().all(|it| it.is_nan()));
    }

    proptest! {
        /// For any entries in any order, no axis leaves its declared range.
        #[test]
        fn any_entries_leave_axes_in_range(
            entries in proptest::collection::vec((1..4_u32, 0..3_u8, 0..20_u8, 0.0_f32..9.0), 0..40),
            wanted: [u32; 16],
        ) {
            let mut declared = Declared::default();
            for (number, axes, index, rate) in entries {
                let counts = Counts { axes, ..Counts::default() };
                declared.hear(&Entry { counts, ..entry(number, index, boom(rate)) });
                declared.adopt();
            }
            let wanted = Axes(wanted.map(f32::from_bits));
            for number in 1..4 {
                let of = (Some(revision(number)), &Axes::NONE);
                let next = declared.axes(of, &Axes([0.5; 16]), Some(&wanted), 0.01);
                prop_assert!(next.0.iter().all(|it| it.is_nan() || (0.0..=1.0).contains(it)));
            }
        }
    }

    #[test]
    fn a_value_needs_no_place_in_the_guard() {
        let none = [f32::NAN; 2];
        let value = ValueInfo {
            name: name("battery"),
            unit: Unit::new("V").unwrap(),
            form: ValueForm::Number,
            range: none,
            warning: none,
            alarm: none,
        };
        let mut declared = declared(7);
        let before = declared;
        declared.hear(&entry(7, 0, Item::Value(value)));
        assert_eq!(declared, before);
    }
}

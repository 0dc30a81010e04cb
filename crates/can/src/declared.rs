//! Axes, actions and values that a map declares in addition to motion.

use std::collections::BTreeSet;

use tautline_guard::description::{
    self, Action, ActionForm, ActionRule, ActionStop, Axis, AxisForm, AxisRule, AxisStop, Item,
    Text, ValueForm, ValueInfo,
};

use crate::control::Control;
use crate::mistake::{Mistake, nearest};
use crate::names::{key, member};
use crate::written::{Map, Value, WrittenAction, WrittenAxis, WrittenValue};

/// Everything that a map declares, in the order of the guard's frames, by name.
#[derive(Clone, Default, Debug)]
pub(crate) struct Declared {
    pub(crate) items: Vec<Item>,
}

/// A declared axis, action or value: its number among those of its kind, and its declaration.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found<'a> {
    Axis(u8),
    Action(u8, &'a ActionRule),
    Value(u8, ValueForm),
}

impl Declared {
    /// Reads the declarations of a map, and adds those that are wrong to `mistakes`. A map that
    /// declares no action has those of a car that its signals name.
    pub(crate) fn of(map: &Map, mistakes: &mut Vec<Mistake>) -> Self {
        let axes = map.axes.iter().map(|it| (it.line, it.part.item()));
        let actions = map.actions.iter().map(|it| (it.line, it.part.item()));
        let values = map.values.iter().map(|it| (it.line, it.part.item()));
        let mut items = Vec::new();
        for (line, item) in axes.chain(actions).chain(values) {
            match item {
                Ok(item) => items.push((line, item)),
                Err(text) => mistakes.push(Mistake::at(line, text)),
            }
        }
        let bare: Vec<Item> = items.iter().map(|(_, item)| *item).collect();
        if let Err((index, flaw)) = description::counts(&bare) {
            let (line, item) = &items[index];
            mistakes.push(Mistake::at(*line, format!("{}: {flaw}", item.name())));
        }
        let mut names: BTreeSet<String> = Control::NAMES.map(|(name, _)| name.to_owned()).into();
        for (line, item) in &items {
            if !names.insert(key(item.name())) {
                let text = format!("{}: a control or an entry above has that name", item.name());
                mistakes.push(Mistake::at(*line, text));
            }
        }
        let mut items = bare;
        if map.actions.is_empty() {
            let used = map.names();
            let is_used = |action: &Action| {
                let name = key(&action.name);
                used.contains(&*name)
                    || used.contains(INDICATORS) && INDICATED.contains(&name.as_str())
            };
            let at = map.axes.len().min(items.len());
            let lamps = Action::of_car().into_iter().filter(is_used).map(Item::Action);
            items.splice(at..at, lamps);
        }
        Self { items }
    }

    /// Returns the item with this name in a map; `None` if none has it.
    pub(crate) fn find(&self, name: &str) -> Option<Found<'_>> {
        let at = self.items.iter().position(|item| key(item.name()) == name)?;
        let of_kind =
            |item: &&Item| std::mem::discriminant(*item) == std::mem::discriminant(&self.items[at]);
        let number = self.items[..at].iter().filter(of_kind).count() as u8;
        Some(match &self.items[at] {
            Item::Axis(_) => Found::Axis(number),
            Item::Action(action) => Found::Action(number, &action.rule),
            Item::Value(value) => Found::Value(number, value.form),
        })
    }

    /// Returns the control that a signal follows by this name: motion, a declared axis or action,
    /// `<axis>_set`, or `indicators`.
    ///
    /// # Errors
    /// A text for people, if there is none.
    pub(crate) fn control(&self, name: &str) -> Result<Control, String> {
        let motion = Control::NAMES.iter().find(|(its, _)| *its == name);
        if let Some((_, control)) = motion {
            return Ok(*control);
        }
        let lamp = |name| match self.find(name) {
            Some(Found::Action(number, _)) => Some(number),
            Some(Found::Axis(_) | Found::Value(..)) | None => None,
        };
        if name == INDICATORS
            && let [Some(left), Some(right), Some(hazard)] = INDICATED.map(lamp)
        {
            return Ok(Control::Indicators { left, right, hazard });
        }
        let axis = name.strip_suffix(SET).and_then(|axis| self.find(axis));
        match self.find(name).or(axis) {
            Some(Found::Axis(number)) if name.ends_with(SET) => Ok(Control::IsSet(number)),
            Some(Found::Axis(number)) => Ok(Control::Axis(number)),
            Some(Found::Action(number, rule)) if rule.form == ActionForm::Request => {
                Ok(Control::Request(number))
            }
            Some(Found::Action(number, _)) => Ok(Control::Action(number)),
            Some(Found::Value(..)) => Err(format!("{name} is a value: it can only be received")),
            None => {
                let own: Vec<String> = self.items.iter().map(|item| key(item.name())).collect();
                let all = Control::NAMES.iter().map(|(name, _)| *name);
                let all = all.chain(own.iter().map(String::as_str));
                Err(format!("there is no control {name}: {}", nearest(name, all)))
            }
        }
    }
}

impl WrittenAxis {
    fn item(&self) -> Result<Item, String> {
        let on_stop = match &self.on_stop {
            None => AxisStop::Hold,
            Some(Value::Number(value)) => AxisStop::Value(*value as f32),
            Some(Value::Name(name)) => match name.as_str() {
                "hold" => AxisStop::Hold,
                "zero" => AxisStop::Zero,
                "release" => AxisStop::Release,
                other => {
                    let known = ["hold", "zero", "release"];
                    return Err(format!(
                        "there is no on_stop {other:?}: {}",
                        nearest(other, known)
                    ));
                }
            },
        };
        let form = self.form.as_deref().map_or(Ok(AxisForm::Position), |it| member("form", it))?;
        let Self { low, high, rate, .. } = *self;
        let rule = AxisRule { form, low, high, rate, on_stop };
        Ok(Item::Axis(Axis { name: text(&self.name)?, unit: text(&self.unit)?, rule }))
    }
}

impl WrittenAction {
    fn item(&self) -> Result<Item, String> {
        let form = self.form.as_deref().map_or(Ok(ActionForm::Momentary), |it| member("form", it));
        let stop = self.on_stop.as_deref().map_or(Ok(ActionStop::Off), |it| member("on_stop", it));
        let rule =
            ActionRule { form: form?, on_stop: stop?, is_allowed_held: self.allowed_while_held };
        Ok(Item::Action(Action { name: text(&self.name)?, rule }))
    }
}

impl WrittenValue {
    fn item(&self) -> Result<Item, String> {
        let form = self.form.as_deref().map_or(Ok(ValueForm::Number), |it| member("form", it));
        Ok(Item::Value(ValueInfo {
            name: text(&self.name)?,
            unit: text(&self.unit)?,
            form: form?,
            range: [self.low, self.high],
            warning: [self.warn_low, self.warn_high],
            alarm: [self.alarm_low, self.alarm_high],
        }))
    }
}

fn text<const N: usize>(text: &str) -> Result<Text<N>, String> {
    Text::new(text).ok_or_else(|| format!("{text:?}: at most {N} bytes, in one line"))
}

/// Name of the control that joins the actions of [`INDICATED`].
const INDICATORS: &str = "indicators";
const INDICATED: [&str; 3] = ["left", "right", "hazard"];
/// End of the name of the control that is on while an axis has a set point.
const SET: &str = "_set";

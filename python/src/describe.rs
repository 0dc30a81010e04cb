//! The description of a machine, from Python's declarations.

use std::collections::HashMap;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tautline_guard::description::{
    self, Action, ActionForm, ActionRule, ActionStop, Axis, AxisForm, AxisRule, AxisStop, Item,
    Reading, Text, ValueForm, ValueInfo,
};
use tautline_guard::{Actions, Axes};

use crate::names::named;

/// Fields of Python's `Description`.
#[derive(FromPyObject)]
pub(crate) struct Description {
    axes: Vec<AxisFields>,
    actions: Vec<ActionFields>,
    values: Vec<ValueFields>,
}

#[derive(FromPyObject)]
struct AxisFields {
    name: String,
    form: String,
    unit: String,
    low: f32,
    high: f32,
    rate: f32,
    on_stop: String,
    stop: f32,
}

#[derive(FromPyObject)]
struct ActionFields {
    name: String,
    form: String,
    on_stop: String,
    allowed_while_held: bool,
}

#[derive(FromPyObject)]
struct ValueFields {
    name: String,
    form: String,
    unit: String,
    low: f32,
    high: f32,
    warn_low: f32,
    warn_high: f32,
    alarm_low: f32,
    alarm_high: f32,
}

impl Description {
    /// Returns the items, in the order of the frames.
    ///
    /// # Errors
    /// A `ValueError` that names what cannot be declared.
    pub(crate) fn items(&self) -> PyResult<Vec<Item>> {
        let axes = self.axes.iter().map(AxisFields::item);
        let actions = self.actions.iter().map(ActionFields::item);
        let values = self.values.iter().map(ValueFields::item);
        let items = axes.chain(actions).chain(values).collect::<PyResult<Vec<Item>>>()?;
        description::counts(&items).map_err(|(index, flaw)| {
            PyValueError::new_err(format!("{}: {flaw}", items[index].name()))
        })?;
        Ok(items)
    }
}

impl AxisFields {
    fn item(&self) -> PyResult<Item> {
        let on_stop = match self.on_stop.as_str() {
            "hold" => AxisStop::Hold,
            "zero" => AxisStop::Zero,
            "value" => AxisStop::Value(self.stop),
            "release" => AxisStop::Release,
            other => return Err(PyValueError::new_err(format!("there is no on_stop {other:?}"))),
        };
        let form = named(AxisForm::ALL, &self.form, "form of an axis")?;
        let rule = AxisRule { form, low: self.low, high: self.high, rate: self.rate, on_stop };
        Ok(Item::Axis(Axis { name: text(&self.name)?, unit: text(&self.unit)?, rule }))
    }
}

impl ActionFields {
    fn item(&self) -> PyResult<Item> {
        let rule = ActionRule {
            form: named(ActionForm::ALL, &self.form, "form of an action")?,
            on_stop: named(ActionStop::ALL, &self.on_stop, "on_stop of an action")?,
            is_allowed_held: self.allowed_while_held,
        };
        Ok(Item::Action(Action { name: text(&self.name)?, rule }))
    }
}

impl ValueFields {
    fn item(&self) -> PyResult<Item> {
        Ok(Item::Value(ValueInfo {
            name: text(&self.name)?,
            unit: text(&self.unit)?,
            form: named(ValueForm::ALL, &self.form, "form of a value")?,
            range: [self.low, self.high],
            warning: [self.warn_low, self.warn_high],
            alarm: [self.alarm_low, self.alarm_high],
        }))
    }
}

/// Names of the declared axes, actions and values, each in the order of their numbers.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) axes: Vec<String>,
    pub(crate) actions: Vec<String>,
    values: Vec<(String, ValueForm)>,
}

impl Names {
    pub(crate) fn of(items: &[Item]) -> Self {
        let mut names = Self { axes: Vec::new(), actions: Vec::new(), values: Vec::new() };
        for item in items {
            let name = item.name().to_string();
            match item {
                Item::Axis(_) => names.axes.push(name),
                Item::Action(_) => names.actions.push(name),
                Item::Value(value) => names.values.push((name, value.form)),
            }
        }
        names
    }

    /// Returns the axes that have a set point, by their names.
    pub(crate) fn set_points(&self, axes: &Axes) -> HashMap<&str, f32> {
        let all = self.axes.iter().map(String::as_str).zip(axes.0);
        all.filter(|(_, value)| !value.is_nan()).collect()
    }

    /// Returns the names of the actions in a set.
    pub(crate) fn of_actions(&self, actions: Actions) -> Vec<&str> {
        let named = actions.iter().filter_map(|number| self.actions.get(usize::from(number)));
        named.map(String::as_str).collect()
    }

    /// Returns measured axes by their numbers.
    ///
    /// # Errors
    /// A `ValueError` for a name that is not declared.
    pub(crate) fn axes(&self, measured: &[(String, f32)]) -> PyResult<Axes> {
        let mut axes = Axes::NONE;
        for (name, value) in measured {
            axes.0[number(self.axes.iter(), name, "axis")?] = *value;
        }
        Ok(axes)
    }

    /// Returns actions by their numbers.
    ///
    /// # Errors
    /// Same as [`axes`](Self::axes).
    pub(crate) fn actions(&self, on: &[String]) -> PyResult<Actions> {
        let numbers = on.iter().map(|name| number(self.actions.iter(), name, "action"));
        let numbers: Vec<usize> = numbers.collect::<PyResult<_>>()?;
        Ok(numbers.into_iter().map(|number| number as u8).collect())
    }

    /// Returns readings by their numbers.
    ///
    /// # Errors
    /// Same as [`axes`](Self::axes); a number for a text, and a text of more than 64 bytes.
    pub(crate) fn readings(
        &self,
        values: &[(String, Bound<'_, PyAny>)],
    ) -> PyResult<Vec<(u8, Reading)>> {
        let reading = |(name, value): &(String, Bound<'_, PyAny>)| {
            let names = self.values.iter().map(|(name, _)| name);
            let number = number(names, name, "value")?;
            let reading = match self.values[number].1 {
                ValueForm::Number => Reading::Number(value.extract()?),
                ValueForm::Text => Reading::Text(text(value.extract()?)?),
            };
            Ok((number as u8, reading))
        };
        values.iter().map(reading).collect()
    }
}

fn number<'a>(
    mut names: impl Iterator<Item = &'a String>,
    name: &str,
    what: &str,
) -> PyResult<usize> {
    let found = names.position(|it| it == name);
    found.ok_or_else(|| PyValueError::new_err(format!("no {what} {name:?} is declared")))
}

fn text<const N: usize>(text: &str) -> PyResult<Text<N>> {
    let made = Text::new(text);
    made.ok_or_else(|| PyValueError::new_err(format!("{text:?}: at most {N} bytes, in one line")))
}

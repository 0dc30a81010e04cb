use flatbuffers::{FlatBufferBuilder, WIPOffset};
use tautline_guard::description::{
    ACTIONS_MAX, AXES_MAX, Action, ActionForm, ActionRule, ActionStop, Axis, AxisForm, AxisRule,
    AxisStop, Item, Name, Revision, Text, Unit, VALUES_MAX, ValueForm, ValueInfo,
};

use crate::Error;
use crate::codec::codec;
use crate::fields::{Kinds, kinds};
use crate::generated::description::{self as wire, Description as Root};
use crate::wire::{Kind, list, text};

/// Axes, actions and values that a machine declares, from vehicle to operator and console.
///
/// Commands and [`Values`](crate::Values) name an item by its index in these lists.
#[derive(Clone, PartialEq, Debug)]
pub struct Description {
    /// Number that another description does not have.
    pub revision: Revision,
    /// Axes, at most 16.
    pub axes: Vec<Axis>,
    /// Actions, at most 32.
    pub actions: Vec<Action>,
    /// Values, at most 64.
    pub values: Vec<ValueInfo>,
}

codec!(Description);

impl Description {
    fn write(&self, builder: &mut FlatBufferBuilder<'static>) {
        let axes: Vec<_> = self.axes.iter().map(|axis| write_axis(axis, builder)).collect();
        let actions: Vec<_> =
            self.actions.iter().map(|action| write_action(action, builder)).collect();
        let values: Vec<_> = self.values.iter().map(|value| write_value(value, builder)).collect();
        let arguments = wire::DescriptionArgs {
            revision: self.revision.get(),
            axes: (!axes.is_empty()).then(|| builder.create_vector(&axes)),
            actions: (!actions.is_empty()).then(|| builder.create_vector(&actions)),
            values: (!values.is_empty()).then(|| builder.create_vector(&values)),
        };
        let root = Root::create(builder, &arguments);
        wire::finish_description_buffer(builder, root);
    }

    fn read(root: Root<'_>) -> Result<Self, Error> {
        Ok(Self {
            revision: revision(root.revision())?,
            axes: match root.axes() {
                Some(axes) => list("axes", axes, AXES_MAX, read_axis)?,
                None => Vec::new(),
            },
            actions: match root.actions() {
                Some(actions) => list("actions", actions, ACTIONS_MAX, read_action)?,
                None => Vec::new(),
            },
            values: match root.values() {
                Some(values) => list("values", values, VALUES_MAX, read_value)?,
                None => Vec::new(),
            },
        })
    }
}

fn write_axis<'b>(axis: &Axis, builder: &mut FlatBufferBuilder<'b>) -> WIPOffset<wire::Axis<'b>> {
    let Axis { name, unit, rule: AxisRule { form, low, high, rate, on_stop } } = axis;
    let (on_stop, stop) = match *on_stop {
        AxisStop::Hold => (wire::AxisStop::Hold, 0.0),
        AxisStop::Zero => (wire::AxisStop::Zero, 0.0),
        AxisStop::Value(value) => (wire::AxisStop::Value, value),
        AxisStop::Release => (wire::AxisStop::Release, 0.0),
    };
    let arguments = wire::AxisArgs {
        name: Some(builder.create_string(name.as_str())),
        unit: written(unit, builder),
        form: form.to_wire(),
        low: *low,
        high: *high,
        rate: *rate,
        on_stop,
        stop,
    };
    wire::Axis::create(builder, &arguments)
}

fn read_axis(axis: wire::Axis<'_>) -> Result<Axis, Error> {
    let on_stop = match axis.on_stop() {
        wire::AxisStop::Hold => AxisStop::Hold,
        wire::AxisStop::Zero => AxisStop::Zero,
        wire::AxisStop::Value => AxisStop::Value(axis.stop()),
        wire::AxisStop::Release => AxisStop::Release,
        other => return Err(Error::Unknown { field: "axes.on_stop", value: other.0 }),
    };
    let form = AxisForm::from_wire(axis.form())?;
    let (low, high, rate) = (axis.low(), axis.high(), axis.rate());
    let (name, unit) = (name("axes.name", axis.name())?, unit("axes.unit", axis.unit())?);
    let axis = Axis { name, unit, rule: AxisRule { form, low, high, rate, on_stop } };
    possible("axes", Item::Axis(axis)).map(|()| axis)
}

fn write_action<'b>(
    action: &Action,
    builder: &mut FlatBufferBuilder<'b>,
) -> WIPOffset<wire::Action<'b>> {
    let Action { name, rule: ActionRule { form, on_stop, is_allowed_held } } = action;
    let arguments = wire::ActionArgs {
        name: Some(builder.create_string(name.as_str())),
        form: form.to_wire(),
        on_stop: on_stop.to_wire(),
        allowed_held: *is_allowed_held,
    };
    wire::Action::create(builder, &arguments)
}

fn read_action(action: wire::Action<'_>) -> Result<Action, Error> {
    let form = ActionForm::from_wire(action.form())?;
    let on_stop = ActionStop::from_wire(action.on_stop())?;
    let rule = ActionRule { form, on_stop, is_allowed_held: action.allowed_held() };
    let action = Action { name: name("actions.name", action.name())?, rule };
    possible("actions", Item::Action(action)).map(|()| action)
}

fn write_value<'b>(
    value: &ValueInfo,
    builder: &mut FlatBufferBuilder<'b>,
) -> WIPOffset<wire::ValueInfo<'b>> {
    let ValueInfo { name, unit, form, range, warning, alarm } = value;
    let arguments = wire::ValueInfoArgs {
        name: Some(builder.create_string(name.as_str())),
        unit: written(unit, builder),
        form: form.to_wire(),
        low: range[0],
        high: range[1],
        warn_low: warning[0],
        warn_high: warning[1],
        alarm_low: alarm[0],
        alarm_high: alarm[1],
    };
    wire::ValueInfo::create(builder, &arguments)
}

fn read_value(value: wire::ValueInfo<'_>) -> Result<ValueInfo, Error> {
    let value = ValueInfo {
        name: name("values.name", value.name())?,
        unit: unit("values.unit", value.unit())?,
        form: ValueForm::from_wire(value.form())?,
        range: [value.low(), value.high()],
        warning: [value.warn_low(), value.warn_high()],
        alarm: [value.alarm_low(), value.alarm_high()],
    };
    possible("values", Item::Value(value)).map(|()| value)
}

/// Returns the revision with this number; an error for 0, which means that it is missing.
pub(crate) fn revision(number: u32) -> Result<Revision, Error> {
    Revision::new(number).ok_or(Error::Missing { field: "revision" })
}

fn written<'b, const N: usize>(
    text: &Text<N>,
    builder: &mut FlatBufferBuilder<'b>,
) -> Option<WIPOffset<&'b str>> {
    let text = text.as_str();
    (!text.is_empty()).then(|| builder.create_string(text))
}

fn name(field: &'static str, said: &str) -> Result<Name, Error> {
    let name = short(field, said)?;
    if name == Name::default() { Err(Error::Missing { field }) } else { Ok(name) }
}

fn unit(field: &'static str, said: Option<&str>) -> Result<Unit, Error> {
    short(field, said.unwrap_or_default())
}

/// Returns a text of at most `N` bytes without control characters.
pub(crate) fn short<const N: usize>(field: &'static str, said: &str) -> Result<Text<N>, Error> {
    text(field, said, N)?;
    Text::new(said).ok_or(Error::Disordered { field })
}

/// Refuses an item that no machine can declare.
fn possible(field: &'static str, item: Item) -> Result<(), Error> {
    item.check().map_err(|flaw| Error::Flawed { field, flaw })
}

kinds!(AxisForm of wire::AxisForm, "axes.form", [Position, Speed]);
kinds!(ActionForm of wire::ActionForm, "actions.form", [Momentary, Switch, Request]);
kinds!(ActionStop of wire::ActionStop, "actions.on_stop", [Off, Keep, On]);
kinds!(ValueForm of wire::ValueForm, "values.form", [Number, Text]);

const KIND: Kind = Kind {
    name: "description",
    identifier: Some(wire::DESCRIPTION_IDENTIFIER),
    bytes_max: 16 * 1024,
    tables_max: 1 + AXES_MAX + ACTIONS_MAX + VALUES_MAX,
    depth_max: 2,
};

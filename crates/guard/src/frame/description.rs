use tautline_units::Instant;

use super::bytes::{Reader, Writer};
use super::error::Error;
use super::payload::{Frame, PAYLOAD_AT};
use super::{crc, layout};
use crate::description::{
    Action, ActionForm, ActionRule, ActionStop, Axis, AxisForm, AxisRule, AxisStop, Counts, Entry,
    Item, Name, Revision, Unit, ValueForm, ValueInfo,
};

/// One entry of a machine's description, from the machine to the guard and on to the vehicle.
///
/// A machine sends one entry every 10 ms, in turn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Description {
    /// Time of sending, by the machine's clock.
    pub source: Instant,
    /// The entry.
    pub entry: Entry,
}

impl Frame for Description {
    const DATA_ID: u32 = layout::Description::DATA_ID;
    const BYTES: usize = layout::Description::BYTES;
    type Bytes = [u8; Self::BYTES];
    const ZEROS: Self::Bytes = [0; Self::BYTES];

    fn source(&self) -> Instant {
        self.source
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let Entry { revision, counts, index, item } = self.entry;
        let raw = layout::Description {
            revision: revision.get(),
            axis_count: counts.axes,
            action_count: counts.actions,
            value_count: counts.values,
            ..to_raw(&item, index)
        };
        raw.write(writer);
    }

    fn read(source: Instant, reader: &mut Reader<'_>) -> Result<Self, Error> {
        type Raw = layout::Description;
        let raw = Raw::read(reader);
        let wrong = |at| Error::Value { at };
        let revision = Revision::new(raw.revision).ok_or(wrong(PAYLOAD_AT))?;
        let counts =
            Counts { axes: raw.axis_count, actions: raw.action_count, values: raw.value_count };
        if !counts.is_possible() {
            return Err(wrong(Raw::AXIS_COUNT_AT));
        }
        let (item, count) = match raw.kind {
            0 => (Item::Axis(axis(&raw)?), counts.axes),
            1 => (Item::Action(action(&raw)?), counts.actions),
            2 => (Item::Value(value(&raw)?), counts.values),
            _ => return Err(wrong(Raw::KIND_AT)),
        };
        if raw.index >= count {
            return Err(wrong(Raw::INDEX_AT));
        }
        item.check().map_err(|_| wrong(Raw::KIND_AT))?;
        Ok(Self { source, entry: Entry { revision, counts, index: raw.index, item } })
    }
}

/// Returns the revision of a description with these items, in the order of axes, actions and
/// values, each numbered from 0; `None` without any.
pub fn revision<'a>(items: impl IntoIterator<Item = &'a Item>) -> Option<Revision> {
    let (mut counts, mut crc) = (Counts::default(), None);
    for item in items {
        let count = match item {
            Item::Axis(_) => &mut counts.axes,
            Item::Action(_) => &mut counts.actions,
            Item::Value(_) => &mut counts.values,
        };
        let index = *count;
        *count = count.saturating_add(1);
        let mut bytes = [0; ITEM_BYTES_END];
        to_raw(item, index).write(&mut Writer::new(&mut bytes));
        let told = &bytes[layout::Description::KIND_AT - PAYLOAD_AT..];
        crc = Some(crc::p4_on(crc.unwrap_or(crc::BEGIN), told));
    }
    // 0 means that there is no description.
    crc.map(|crc| Revision::new(crc::end(crc).max(1)).expect("at least 1"))
}

/// Returns the numbers of an item, with zeros for what its description shares.
fn to_raw(item: &Item, index: u8) -> layout::Description {
    let none = layout::Description {
        revision: 0,
        axis_count: 0,
        action_count: 0,
        value_count: 0,
        kind: 0,
        index,
        form: 0,
        on_stop: 0,
        flags: 0,
        name: *item.name().padded(),
        unit: *Unit::default().padded(),
        low: 0.0,
        high: 0.0,
        rate: 0.0,
        stop: 0.0,
        warn_low: f32::NAN,
        warn_high: f32::NAN,
        alarm_low: f32::NAN,
        alarm_high: f32::NAN,
    };
    match item {
        Item::Axis(Axis { unit, rule, .. }) => {
            let (on_stop, stop) = match rule.on_stop {
                AxisStop::Hold => (0, 0.0),
                AxisStop::Zero => (1, 0.0),
                AxisStop::Value(value) => (2, value),
                AxisStop::Release => (3, 0.0),
            };
            let AxisRule { form, low, high, rate, .. } = *rule;
            let (form, unit) = (form.number(), *unit.padded());
            layout::Description { form, on_stop, unit, low, high, rate, stop, ..none }
        }
        Item::Action(Action { rule, .. }) => layout::Description {
            kind: 1,
            form: rule.form.number(),
            on_stop: rule.on_stop.number(),
            flags: rule.is_allowed_held.into(),
            ..none
        },
        Item::Value(ValueInfo { unit, form, range, warning, alarm, .. }) => layout::Description {
            kind: 2,
            form: form.number(),
            unit: *unit.padded(),
            low: range[0],
            high: range[1],
            warn_low: warning[0],
            warn_high: warning[1],
            alarm_low: alarm[0],
            alarm_high: alarm[1],
            ..none
        },
    }
}

fn name(raw: &layout::Description) -> Result<Name, Error> {
    Name::from_padded(&raw.name).ok_or(Error::Value { at: layout::Description::NAME_AT })
}

fn unit(raw: &layout::Description) -> Result<Unit, Error> {
    Unit::from_padded(&raw.unit).ok_or(Error::Value { at: layout::Description::UNIT_AT })
}

fn axis(raw: &layout::Description) -> Result<Axis, Error> {
    let wrong = |at| Error::Value { at };
    let form = AxisForm::from_number(raw.form).ok_or(wrong(layout::Description::FORM_AT))?;
    let on_stop = match raw.on_stop {
        0 => AxisStop::Hold,
        1 => AxisStop::Zero,
        2 => AxisStop::Value(raw.stop),
        3 => AxisStop::Release,
        _ => return Err(wrong(layout::Description::ON_STOP_AT)),
    };
    let rule = AxisRule { form, low: raw.low, high: raw.high, rate: raw.rate, on_stop };
    Ok(Axis { name: name(raw)?, unit: unit(raw)?, rule })
}

fn action(raw: &layout::Description) -> Result<Action, Error> {
    let wrong = |at| Error::Value { at };
    let form = ActionForm::from_number(raw.form).ok_or(wrong(layout::Description::FORM_AT))?;
    let on_stop = ActionStop::from_number(raw.on_stop);
    let on_stop = on_stop.ok_or(wrong(layout::Description::ON_STOP_AT))?;
    let is_allowed_held = super::bytes::flag(raw.flags, layout::Description::FLAGS_AT)?;
    Ok(Action { name: name(raw)?, rule: ActionRule { form, on_stop, is_allowed_held } })
}

fn value(raw: &layout::Description) -> Result<ValueInfo, Error> {
    let at = layout::Description::FORM_AT;
    Ok(ValueInfo {
        name: name(raw)?,
        unit: unit(raw)?,
        form: ValueForm::from_number(raw.form).ok_or(Error::Value { at })?,
        range: [raw.low, raw.high],
        warning: [raw.warn_low, raw.warn_high],
        alarm: [raw.alarm_low, raw.alarm_high],
    })
}

/// Length in bytes of the payload of an entry.
const ITEM_BYTES_END: usize = layout::Description::BYTES - PAYLOAD_AT;

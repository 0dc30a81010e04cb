//! Messages of the vehicle as keyword arguments of Python's types.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tautline_guard::description::{Action, Axis, Item, Reading, ValueInfo};
use tautline_guard::frame::Status;
use tautline_guard::identity::Console;
use tautline_guard::{Controls, Gear, MachineState, Member, Set};
use tautline_message::{Description, Telemetry, Values};

use crate::describe::Names;
use crate::names::name_of;

/// Returns the status in telemetry that arrived at the Unix time `unix_nanos`; `None` while the
/// guard is silent. `console` is this console's number; 0 stands for any.
pub(crate) fn status<'py>(
    py: Python<'py>,
    telemetry: &Telemetry,
    unix_nanos: u64,
    description: Option<&Description>,
    values: Option<&Values>,
    console: u64,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(status) = telemetry.status() else { return Ok(None) };
    let declared = status.machine.and_then(|(machine, _)| machine.description);
    let description = description.filter(|it| Some(it.revision) == declared);
    let names = Names::of(&description.map(items).unwrap_or_default());
    let dict = PyDict::new(py);
    dict.set_item("received_ns", unix_nanos)?;
    dict.set_item("mode", name_of(&status.mode))?;
    dict.set_item("cause", name_of(&status.why.cause))?;
    dict.set_item("value", status.why.value)?;
    dict.set_item("limit", status.why.limit)?;
    dict.set_item("stop", status.stop.get())?;
    dict.set_item("latched", status.is_latched)?;
    dict.set_item("blockers", set(status.blockers))?;
    let drives = |holder: Console| console == 0 || holder.get() == console;
    dict.set_item("drives", status.holder.is_some_and(drives))?;
    dict.set_item("loop_age", status.loop_age.map(|age| age.as_secs_f64()))?;
    dict.set_item("command_age", status.command_age.map(|age| age.as_secs_f64()))?;
    dict.set_item("speed_bound", status.speed_bound)?;
    dict.set_item("sideways_bound", status.sideways_speed_bound)?;
    dict.set_item("yaw_rate_bound", status.yaw_rate_bound)?;
    dict.set_item("motion", status.motion.name())?;
    let countdown = status.countdown.map(|(cause, left)| (name_of(&cause), left.as_secs_f64()));
    dict.set_item("countdown", countdown)?;
    dict.set_item("limits", set(status.limits))?;
    dict.set_item("black_box", name_of(&status.black_box))?;
    dict.set_item("sights", set(telemetry.sight))?;
    dict.set_item("reason", telemetry.mode_reason.as_deref())?;
    dict.set_item("camera_trouble", telemetry.source_trouble.as_deref())?;
    dict.set_item("applied", controls(py, status, &names)?)?;
    let machine = status.machine.as_ref();
    dict.set_item("state_age", machine.map(|(_, age)| age.as_secs_f64()))?;
    let machine = machine.map(|(machine, _)| state(py, machine, &names, description, values));
    dict.set_item("state", machine.transpose()?)?;
    Ok(Some(dict))
}

/// Returns the items of a description, in the order of the frames.
pub(super) fn items(description: &Description) -> Vec<Item> {
    let axes = description.axes.iter().copied().map(Item::Axis);
    let actions = description.actions.iter().copied().map(Item::Action);
    let values = description.values.iter().copied().map(Item::Value);
    axes.chain(actions).chain(values).collect()
}

/// Returns the declared items, each as keyword arguments.
pub(crate) fn description<'py>(
    py: Python<'py>,
    description: &Description,
) -> PyResult<Bound<'py, PyDict>> {
    let axes = description.axes.iter().map(|it| axis(py, it)).collect::<PyResult<Vec<_>>>()?;
    let actions = description.actions.iter().map(|it| action(py, it));
    let values = description.values.iter().map(|it| value(py, it));
    let dict = PyDict::new(py);
    dict.set_item("axes", axes)?;
    dict.set_item("actions", actions.collect::<PyResult<Vec<_>>>()?)?;
    dict.set_item("values", values.collect::<PyResult<Vec<_>>>()?)?;
    Ok(dict)
}

fn axis<'py>(py: Python<'py>, axis: &Axis) -> PyResult<Bound<'py, PyDict>> {
    use tautline_guard::description::AxisStop;
    let (on_stop, stop) = match axis.rule.on_stop {
        AxisStop::Hold => ("hold", 0.0),
        AxisStop::Zero => ("zero", 0.0),
        AxisStop::Value(stop) => ("value", stop),
        AxisStop::Release => ("release", 0.0),
    };
    let dict = PyDict::new(py);
    dict.set_item("name", axis.name.as_str())?;
    dict.set_item("form", name_of(&axis.rule.form))?;
    dict.set_item("unit", axis.unit.as_str())?;
    dict.set_item("low", axis.rule.low)?;
    dict.set_item("high", axis.rule.high)?;
    dict.set_item("rate", axis.rule.rate)?;
    dict.set_item("on_stop", on_stop)?;
    dict.set_item("stop", stop)?;
    Ok(dict)
}

fn action<'py>(py: Python<'py>, action: &Action) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", action.name.as_str())?;
    dict.set_item("form", name_of(&action.rule.form))?;
    dict.set_item("on_stop", name_of(&action.rule.on_stop))?;
    dict.set_item("allowed_while_held", action.rule.is_allowed_held)?;
    Ok(dict)
}

fn value<'py>(py: Python<'py>, value: &ValueInfo) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", value.name.as_str())?;
    dict.set_item("form", name_of(&value.form))?;
    dict.set_item("unit", value.unit.as_str())?;
    let pairs = [("", value.range), ("warn_", value.warning), ("alarm_", value.alarm)];
    for (prefix, [low, high]) in pairs {
        dict.set_item(format!("{prefix}low"), low)?;
        dict.set_item(format!("{prefix}high"), high)?;
    }
    Ok(dict)
}

/// Returns the controls that the guard applies.
fn controls<'py>(py: Python<'py>, status: &Status, names: &Names) -> PyResult<Bound<'py, PyDict>> {
    let Controls { steering, throttle, brake, gear, parking_brake, twist, axes, actions } =
        &status.applied;
    let dict = PyDict::new(py);
    dict.set_item("mode", name_of(&status.mode))?;
    dict.set_item("steering", steering)?;
    dict.set_item("throttle", throttle)?;
    dict.set_item("brake", brake)?;
    dict.set_item("gear", gear_name(*gear))?;
    dict.set_item("parking_brake", parking_brake)?;
    dict.set_item("forward", twist.forward)?;
    dict.set_item("sideways", twist.sideways)?;
    dict.set_item("yaw_rate", twist.yaw_rate)?;
    dict.set_item("axes", names.set_points(axes))?;
    dict.set_item("actions", names.of_actions(*actions))?;
    Ok(dict)
}

/// Returns the state that the machine reports.
fn state<'py>(
    py: Python<'py>,
    machine: &MachineState,
    names: &Names,
    description: Option<&Description>,
    values: Option<&Values>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("speed", machine.speed)?;
    dict.set_item("yaw_rate", machine.yaw_rate)?;
    dict.set_item("sideways", machine.sideways_speed)?;
    dict.set_item("steering_angle", machine.steering_angle)?;
    dict.set_item("gear", gear_name(machine.gear))?;
    dict.set_item("position", machine.position.map(|it| (it.x, it.y, it.heading)))?;
    dict.set_item("place", machine.place.map(|it| (it.latitude, it.longitude, it.height)))?;
    dict.set_item("faults", set(machine.faults))?;
    dict.set_item("notices", set(machine.notices))?;
    dict.set_item("axes", names.set_points(&machine.axes))?;
    dict.set_item("actions", names.of_actions(machine.actions))?;
    dict.set_item("acceleration_along", machine.told.acceleration_along)?;
    dict.set_item("acceleration_across", machine.told.acceleration_across)?;
    dict.set_item("charge", machine.told.charge)?;
    let readings = values.map(|values| readings(py, values, description)).transpose()?;
    dict.set_item("values", readings.unwrap_or_else(|| PyDict::new(py)))?;
    Ok(dict)
}

/// Returns readings by the names of their values; empty without their description.
pub(crate) fn readings<'py>(
    py: Python<'py>,
    values: &Values,
    description: Option<&Description>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let description = description.filter(|it| it.revision == values.revision);
    for (number, reading) in &values.readings {
        let info = description.and_then(|it| it.values.get(usize::from(*number)));
        let Some(info) = info else { continue };
        match reading {
            Reading::Number(number) => dict.set_item(info.name.as_str(), number)?,
            Reading::Text(text) => dict.set_item(info.name.as_str(), text.as_str())?,
        }
    }
    Ok(dict)
}

fn gear_name(gear: Gear) -> &'static str {
    match gear {
        Gear::Drive => "drive",
        Gear::Reverse => "reverse",
    }
}

/// Returns the names of a set's members.
fn set<E: Member>(set: Set<E>) -> Vec<String> {
    set.iter().map(|member| name_of(&member)).collect()
}

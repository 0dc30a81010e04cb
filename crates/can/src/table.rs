use tautline_guard::description::Item;

use crate::adapter::Adapter;
use crate::incoming::{Condition, Incoming, Target};
use crate::names::{key, snake};
use crate::outgoing::{Outgoing, Schedule};
use crate::signal::Signal;

/// Formats what a map connects as a table for a terminal: message, identifier, period, signal, unit
/// and use.
pub fn table(adapter: &Adapter) -> String {
    let mut rows =
        vec![["", "message", "id", "period", "signal", "unit", "use"].map(str::to_owned)];
    adapter.outgoing().iter().for_each(|it| sent(it, &mut rows));
    let items = adapter.description();
    adapter.incoming().iter().for_each(|it| received(it, items, &mut rows));
    let widths: [usize; 7] = std::array::from_fn(|column| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    });
    let mut table = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        table.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        table.push('\n');
    }
    table
}

type Row = [String; 7];

fn sent(outgoing: &Outgoing, rows: &mut Vec<Row>) {
    let period = match outgoing.schedule {
        Schedule::Always(period) => format!("{} ms", period.as_millis()),
        Schedule::Stop(period) => format!("stop, {} ms", period.as_millis()),
        Schedule::End => "end".to_owned(),
    };
    let mut push = |signal: &str, unit: &str, used: String| {
        let (name, id) = (outgoing.name.clone(), outgoing.id.to_string());
        rows.push(["send".into(), name, id, period.clone(), signal.into(), unit.into(), used]);
    };
    for bound in &outgoing.bound {
        let terms = bound.terms.iter().map(|term| format!("{}{}", term.name, term.curve));
        let terms = terms.collect::<Vec<_>>().join(" + ");
        push(&bound.signal.name, &bound.signal.unit, format!("{terms}; {}", bound.limits));
    }
    let constants = |values: &[(Signal, f64)]| {
        let values = values.iter().map(|(signal, value)| format!("{} = {value}", signal.name));
        values.collect::<Vec<_>>().join(", ")
    };
    if !outgoing.at_stop.is_empty() {
        push("", "", format!("at stop: {}", constants(&outgoing.at_stop)));
    }
    if let Some(at_end) = &outgoing.at_end {
        push("", "", format!("at end: {}", constants(at_end)));
    }
    if outgoing.bound.is_empty() && outgoing.at_stop.is_empty() && outgoing.at_end.is_none() {
        push("", "", "constants".to_owned());
    }
}

fn received(incoming: &Incoming, items: &[Item], rows: &mut Vec<Row>) {
    let fault = incoming.fault.map_or("unknown".to_owned(), snake);
    let timeout = format!("< {} ms", incoming.timeout.as_millis());
    let message = &incoming.message;
    let mut push = |signal: &str, unit: &str, used: String| {
        let (name, id) = (message.name.clone(), message.id.to_string());
        rows.push(["receive".into(), name, id, timeout.clone(), signal.into(), unit.into(), used]);
    };
    for its in &incoming.uses {
        let signal = &message.signals[its.index];
        push(&signal.name, &signal.unit, used(&its.target, signal, items));
    }
    push("", "", format!("else: {fault}"));
}

fn used(target: &Target, signal: &Signal, items: &[Item]) -> String {
    let condition = |condition: &Condition| match condition {
        Condition::NotZero => "if not 0".to_owned(),
        Condition::Outside(values) => match (*values.start(), *values.end()) {
            (f64::MIN, above) => format!("if above {above}"),
            (below, f64::MAX) => format!("if below {below}"),
            (below, above) => format!("if below {below} or above {above}"),
        },
        Condition::Is(values) => {
            let name = |raw: &u64| match signal.name_of(*raw) {
                Some(name) => name.to_owned(),
                None => signal.physical(*raw).to_string(),
            };
            format!("if {}", values.iter().map(name).collect::<Vec<_>>().join(" or "))
        }
    };
    let name = |is_kind: fn(&Item) -> bool, number: u8| {
        let mut named = items.iter().filter(|item| is_kind(item));
        named.nth(number.into()).map_or(String::new(), |item| key(item.name()))
    };
    let is_axis = |item: &Item| matches!(item, Item::Axis(_));
    let is_action = |item: &Item| matches!(item, Item::Action(_));
    let is_value = |item: &Item| matches!(item, Item::Value(_));
    match target {
        Target::Speed { curve, is_signed_by_gear: true } => format!("speed, signed by gear{curve}"),
        Target::Speed { curve, is_signed_by_gear: false } => format!("speed{curve}"),
        Target::SidewaysSpeed(curve) => format!("sideways_speed{curve}"),
        Target::YawRate(curve) => format!("yaw_rate{curve}"),
        Target::SteeringAngle(curve) => format!("steering_angle{curve}"),
        Target::Gear { .. } => "gear".to_owned(),
        Target::AccelerationAlong(curve) => format!("acceleration_along{curve}"),
        Target::AccelerationAcross(curve) => format!("acceleration_across{curve}"),
        Target::Charge(curve) => format!("charge{curve}"),
        Target::Notice(notice, its) => format!("notice {} {}", snake(notice), condition(its)),
        Target::Fault(fault, its) => format!("fault {} {}", snake(fault), condition(its)),
        Target::Action(number, its) => {
            format!("action {} {}", name(is_action, *number), condition(its))
        }
        Target::Axis(number, curve) => format!("axis {}{curve}", name(is_axis, *number)),
        Target::Number(number, curve) => format!("value {}{curve}", name(is_value, *number)),
        Target::Text(number) => format!("value {}", name(is_value, *number)),
        Target::Answer { action, .. } => format!("answer {}", name(is_action, *action)),
    }
}

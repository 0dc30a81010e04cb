use proptest::prelude::*;
use std::string::String;

use super::*;

fn rule(form: AxisForm, [low, high]: [f32; 2], on_stop: AxisStop) -> AxisRule {
    AxisRule { form, low, high, rate: 1.0, on_stop }
}

#[test]
fn a_stop_leaves_no_axis_moving() {
    let speed = |range, on_stop| rule(AxisForm::Speed, range, on_stop).check();
    assert_eq!(speed([-1.0, 1.0], AxisStop::Hold), Err(Flaw::HeldSpeed));
    assert_eq!(speed([-1.0, 1.0], AxisStop::Value(0.5)), Err(Flaw::HeldSpeed));
    assert_eq!(speed([0.1, 1.0], AxisStop::Zero), Err(Flaw::NoStandstill));
    assert_eq!(speed([0.1, 1.0], AxisStop::Release), Err(Flaw::NoStandstill));
    assert_eq!(speed([-1.0, 1.0], AxisStop::Zero), Ok(()));
    assert_eq!(speed([0.0, 1.0], AxisStop::Value(0.0)), Ok(()));
}

#[test]
fn a_position_may_be_held_and_stops_in_its_range() {
    let position = |range, on_stop| rule(AxisForm::Position, range, on_stop).check();
    assert_eq!(position([0.2, 1.0], AxisStop::Hold), Ok(()));
    assert_eq!(position([0.2, 1.0], AxisStop::Zero), Err(Flaw::StopValue));
    assert_eq!(position([0.2, 1.0], AxisStop::Value(f32::NAN)), Err(Flaw::StopValue));
    assert_eq!(position([0.2, 1.0], AxisStop::Value(0.5)), Ok(()));
    assert_eq!(position([1.0, 1.0], AxisStop::Hold), Err(Flaw::Range));
    assert_eq!(position([f32::NAN, 1.0], AxisStop::Hold), Err(Flaw::Range));
    for rate in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let rule = AxisRule { rate, ..rule(AxisForm::Position, [0.0, 1.0], AxisStop::Hold) };
        assert_eq!(rule.check(), Err(Flaw::Rate), "{rate}");
    }
}

#[test]
fn limits_of_a_value_do_not_cross() {
    let none = [f32::NAN; 2];
    let of = |range, warning, alarm| {
        let name = Name::new("battery").unwrap();
        let unit = Unit::new("V").unwrap();
        ValueInfo { name, unit, form: ValueForm::Number, range, warning, alarm }
    };
    let value = of([0.0, 60.0], [44.0, f32::NAN], [42.0, 58.0]);
    assert_eq!(Item::Value(value).check(), Ok(()));
    assert_eq!(value.severity(43.0), Severity::Warning);
    assert_eq!(value.severity(41.0), Severity::Alarm);
    assert_eq!(value.severity(59.0), Severity::Alarm);
    assert_eq!(
        (value.severity(50.0), value.severity(f32::NAN)),
        (Severity::Normal, Severity::Normal)
    );
    for flawed in [
        of([1.0, 0.0], none, none),
        of(none, [2.0, 1.0], none),
        of(none, [44.0, f32::NAN], [45.0, f32::NAN]),
        ValueInfo { form: ValueForm::Text, ..of(none, [1.0, f32::NAN], none) },
    ] {
        assert_eq!(Item::Value(flawed).check(), Err(Flaw::Limits), "{flawed:?}");
    }
}

proptest! {
    #[test]
    fn a_text_survives_padding(text in "\\PC{0,30}") {
        match Name::new(&text) {
            Some(name) => {
                prop_assert_eq!(name.as_str(), &text);
                prop_assert_eq!(Name::from_padded(name.padded()), Some(name));
            }
            None => prop_assert!(text.len() > 24 || text.chars().any(char::is_control)),
        }
    }

    #[test]
    fn any_bytes_are_a_text_or_none(bytes: [u8; 12]) {
        if let Some(unit) = Unit::from_padded(&bytes) {
            prop_assert_eq!(unit.padded(), &bytes);
            prop_assert_eq!(Unit::new(&String::from(unit.as_str())), Some(unit));
        }
    }
}

#[test]
fn items_are_counted_in_order_and_within_their_limits() {
    let [horn, ..] = Action::of_car();
    let boom = Item::Axis(Axis {
        name: Name::new("boom").unwrap(),
        unit: Unit::default(),
        rule: rule(AxisForm::Speed, [-1.0, 1.0], AxisStop::Zero),
    });
    let some = [boom, Item::Action(horn), Item::Action(horn)];
    assert_eq!(counts(&some), Ok(Counts { axes: 1, actions: 2, values: 0 }));
    assert_eq!(counts(&[some[1], some[0]]), Err((1, Flaw::Order)));
    assert_eq!(counts(&[boom; 17]), Err((16, Flaw::TooMany)));
    assert_eq!(counts(&[Item::Action(horn); 33]), Err((32, Flaw::TooMany)));
    let nameless = Item::Action(Action { name: Name::default(), ..horn });
    assert_eq!(counts(&[boom, nameless]), Err((1, Flaw::NoName)));
}

//! Frames with arbitrary values: the guard continues, and its output is valid.

use proptest::prelude::*;

use super::super::*;
use crate::description::{
    Action, ActionForm, ActionRule, ActionStop, Axis, AxisForm, AxisRule, AxisStop, Counts, Item,
    Name, Revision, Unit,
};
use crate::frame::{DeadMan, decode, encode};
use crate::{Actions, Answered, Axes, Gear, Set, Twist};

/// Returns the set of those bits that have a meaning.
fn set<E: crate::Member>(bits: u32) -> Set<E> {
    E::ALL.iter().copied().filter(|member| bits & 1 << member.number() != 0).collect()
}

prop_compose! {
    fn any_controls()(
        shares in any::<[u32; 6]>(), is_reverse: bool, parking_brake: bool, actions: u32,
        axes in any::<[u32; 16]>(),
    ) -> Controls {
        let [steering, throttle, brake, forward, sideways, yaw_rate] = shares.map(f32::from_bits);
        let twist = Twist { forward, sideways, yaw_rate };
        let gear = if is_reverse { Gear::Reverse } else { Gear::Drive };
        let (axes, actions) = (Axes(axes.map(f32::from_bits)), Actions::from_bits(actions));
        Controls { steering, throttle, brake, gear, parking_brake, twist, axes, actions }
    }
}

prop_compose! {
    fn any_command()(
        sequence: u64, consoles in any::<[u8; 2]>(), controls in any_controls(),
        absences in prop_oneof![3 => Just(0), 1 => any::<u32>()],
        cited in 0_u32..1_200, age in proptest::option::of(0_u64..400),
    ) -> Option<Command> {
        let [console, successor] = consoles.map(|console| Console::new(u64::from(console % 4)));
        Some(Command {
            sequence,
            console: console?,
            successor,
            controls,
            dead_man: DeadMan::Held,
            absences: set(absences),
            cited: Tick::new(cited),
            age: age.map(Duration::from_millis),
        })
    }
}

prop_compose! {
    fn any_act()(console in 0_u64..4, number in 0_u32..40, deed in 0_u8..5, stop in 990_u32..1_010)
        -> Option<Act> {
        let deed = match deed {
            0 => Deed::Arm,
            1 => Deed::Reset(Stop::new(stop)?),
            2 => Deed::Park,
            3 => Deed::Request((stop % 40) as u8),
            _ => Deed::TakeOver,
        };
        let (console, number) = (Console::new(console)?, ActNumber::new(number)?);
        Some(Act { console, number, deed, age: Some(Duration::ZERO) })
    }
}

prop_compose! {
    fn any_proposal()(
        source: u64, session in 0_u32..3, troubles in prop_oneof![5 => Just(0), 1 => any::<u32>()],
        command in any_command(), emergency in prop_oneof![5 => Just(0), 1 => 0_u32..3],
        act in any_act(),
    ) -> Proposal {
        Proposal {
            source: Instant::from_nanos(source),
            session: Session::new(session),
            troubles: set(troubles),
            command,
            emergency_stop: ActNumber::new(emergency),
            act,
        }
    }
}

prop_compose! {
    fn any_machine()(
        measured: u64, numbers in any::<[u32; 4]>(), is_sane: bool, notices in 0_u32..32, faults: u32,
        revision in 0_u32..3, answered in proptest::option::of((1_000_u32..1_060, any::<bool>())),
    ) -> MachineState {
        let [speed, sideways_speed, yaw_rate, steering_angle] = numbers.map(f32::from_bits);
        let wild = MachineState {
            measured_at: Instant::from_nanos(measured),
            speed,
            sideways_speed,
            yaw_rate,
            steering_angle,
            notices: set(notices),
            faults: set(faults),
            axes: Axes(numbers.map(f32::from_bits).iter().copied().cycle().take(16).enumerate().fold(
                [0.0; 16],
                |mut all, (number, value)| {
                    all[number] = value;
                    all
                },
            )),
            ..MachineState::default()
        };
        let answered =
            answered.map(|(number, is_accepted)| Answered { number, is_accepted });
        let told = if is_sane { MachineState::default() } else { wild };
        MachineState { answered, description: Revision::new(revision), ..told }
    }
}

prop_compose! {
    fn any_entry()(
        revision in 1_u32..3, index in 0_u8..4, kind in 0_u8..2, form in 0_u8..3, stop in 0_u8..4,
        is_allowed_held: bool, range in any::<[u32; 3]>(), is_wild: bool,
    ) -> Entry {
        let name = Name::new("boom").unwrap();
        let [low, high, rate] =
            if is_wild { range.map(f32::from_bits) } else { [-LIMIT, LIMIT, 1.0] };
        let axis = AxisRule {
            form: if form == 0 { AxisForm::Position } else { AxisForm::Speed },
            low,
            high,
            rate,
            on_stop: match stop {
                0 => AxisStop::Hold,
                1 => AxisStop::Zero,
                2 => AxisStop::Value(high),
                _ => AxisStop::Release,
            },
        };
        let action = ActionRule {
            form: ActionForm::from_number(form).unwrap(),
            on_stop: ActionStop::from_number(stop % 3).unwrap(),
            is_allowed_held,
        };
        let item = match kind {
            0 => Item::Axis(Axis { name, unit: Unit::default(), rule: axis }),
            _ => Item::Action(Action { name, rule: action }),
        };
        let counts = Counts { axes: 2, actions: 2, values: 0 };
        Entry { revision: Revision::new(revision).unwrap(), counts, index, item }
    }
}

/// Limit of the axes with a sensible range.
const LIMIT: f32 = 2.0;

proptest! {
    #[test]
    fn any_inputs_are_harmless(
        inputs in proptest::collection::vec(
            (
                proptest::option::of(any_proposal()),
                proptest::option::of(any_machine()),
                proptest::option::of(any_entry()),
                prop_oneof![8 => 0_u64..30, 1 => any::<u64>()],
            ),
            1..60,
        ),
        kind in 0_usize..4,
    ) {
        let configs = [Config::car(), Config::robot(), Config::rover(), Config::cart()];
        let mut guard = Guard::new(configs[kind], Tick::new(1_000).unwrap());
        let motion = configs[kind].machine.motion;
        let mut now = Instant::ZERO;
        for (proposal, machine, entry, millis) in inputs {
            now += Duration::from_millis(millis);
            let output = guard.step(&Input { proposal, machine, entry, ..Input::default() }, now);
            let controls = output.control.controls;
            prop_assert_eq!(controls, controls.sane());
            prop_assert_eq!(controls, controls.of(motion));
            let mode = output.status.mode;
            prop_assert!(controls.throttle == 0.0 || mode.is_driving());
            let moves = controls.twist != Twist::ZERO;
            prop_assert!(!moves || mode.is_driving() || mode == Mode::Manoeuvre);
            prop_assert!(output.status.speed_bound.is_finite());
            let bytes = encode(&output.control, 0);
            prop_assert_eq!(decode(&bytes), Ok((output.control, 0)));
            prop_assert!(decode::<Status>(&encode(&output.status, 0)).is_ok());
        }
    }
}

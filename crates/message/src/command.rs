use flatbuffers::{FlatBufferBuilder, Vector};
use tautline_guard::frame::DeadMan;
use tautline_guard::{Actions, Axes, Gear, Twist};
use tautline_units::Instant;

use crate::Error;
use crate::codec::codec;
use crate::fields::{Kinds, choice, kinds};
use crate::generated::command::{self as wire_command, Command as Root};
use crate::wire::{Kind, length, number};

/// A driving command from the operator to the vehicle.
///
/// One fixed-size struct on the wire (schemas/command.fbs), plus the other fields if they are not
/// 0: 56 bytes or more.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Command {
    /// Sequence number, increased by one with each command of a session; of a command that is not
    /// newer than the last, only an emergency stop counts.
    pub sequence: u64,
    /// Time at which the operator sent the command, on the operator's clock.
    pub sent_at: Instant,
    /// Steering that the person requests, -1 (full right) to 1 (full left).
    pub steering: f32,
    /// Throttle that the person requests, 0 to 1.
    pub throttle: f32,
    /// Brake that the person requests, 0 to 1.
    pub brake: f32,
    /// Direction in which throttle drives.
    pub gear: Gear,
    /// True if the vehicle stops immediately, regardless of the rest of the command.
    pub emergency_stop: bool,
    /// Console that sent the command: a unique number per loaded page, 0 for none.
    pub console: u64,
    /// Guard's tick of the newest picture visible to the person, 0 for none.
    pub cited: u32,
    /// Newest act of the person, repeated until the guard has reported it; `None` without one.
    pub act: Option<Act>,
    /// Number of the newest emergency stop, repeated until the guard has reported it; 0 for none.
    pub emergency_stop_number: u32,
    /// State of the person's dead-man input.
    pub dead_man: DeadMan,
    /// Bits for what prevents the person from driving with sound inputs: see the schema.
    pub absences: u32,
    /// Console to which the sending console hands over, 0 for none.
    pub successor: u64,
    /// Motion that the person requests of a machine that a twist moves.
    pub twist: Twist,
    /// Set points that the person requests of the machine's declared axes.
    pub axes: Axes,
    /// Declared actions that the person holds down or has switched on.
    pub actions: Actions,
}

codec!(Command);

impl Command {
    fn write(&self, builder: &mut FlatBufferBuilder<'static>) {
        let controls = wire_command::Controls::new(
            self.sequence,
            self.sent_at.as_nanos(),
            self.steering,
            self.throttle,
            self.brake,
            self.gear.to_wire(),
            self.emergency_stop,
        );
        let act =
            self.act.map(|act| wire_command::Act::new(act.number, act.stop, act.deed.to_wire()));
        let Twist { forward, sideways, yaw_rate } = self.twist;
        let twist = wire_command::Twist::new(forward, sideways, yaw_rate);
        let count = self.axes.0.iter().rposition(|set_point| !set_point.is_nan());
        let axes = count.map(|last| builder.create_vector(&self.axes.0[..=last]));
        let arguments = wire_command::CommandArgs {
            controls: Some(&controls),
            console: self.console,
            cited: self.cited,
            act: act.as_ref(),
            emergency_stop_number: self.emergency_stop_number,
            dead_man: self.dead_man.to_wire(),
            absences: self.absences,
            successor: self.successor,
            twist: (self.twist != Twist::ZERO).then_some(&twist),
            axes,
            actions: self.actions.bits(),
        };
        let root = Root::create(builder, &arguments);
        wire_command::finish_command_buffer(builder, root);
    }

    fn read(root: Root<'_>) -> Result<Self, Error> {
        let controls = root.controls();
        let act = root.act().map(|act| {
            let deed = Deed::from_wire(act.deed())?;
            Ok(Act { number: act.number(), stop: act.stop(), deed })
        });
        Ok(Self {
            sequence: controls.sequence(),
            sent_at: Instant::from_nanos(controls.sent_at_ns()),
            steering: number("steering", controls.steering(), -1.0, 1.0)?,
            throttle: number("throttle", controls.throttle(), 0.0, 1.0)?,
            brake: number("brake", controls.brake(), 0.0, 1.0)?,
            gear: Gear::from_wire(controls.gear())?,
            emergency_stop: controls.emergency_stop(),
            console: root.console(),
            cited: root.cited(),
            act: act.transpose()?,
            emergency_stop_number: root.emergency_stop_number(),
            dead_man: DeadMan::from_wire(root.dead_man())?,
            absences: root.absences(),
            successor: root.successor(),
            twist: root.twist().map_or(Ok(Twist::ZERO), twist)?,
            axes: axes(root.axes())?,
            actions: Actions::from_bits(root.actions()),
        })
    }
}

/// Returns a twist with every value within its bounds.
fn twist(twist: &wire_command::Twist) -> Result<Twist, Error> {
    let within = |field, value, most: f32| number(field, value, -most, most);
    Ok(Twist {
        forward: within("twist.forward_mps", twist.forward_mps(), Twist::SPEED_MOST)?,
        sideways: within("twist.sideways_mps", twist.sideways_mps(), Twist::SPEED_MOST)?,
        yaw_rate: within("twist.yaw_rate", twist.yaw_rate(), Twist::YAW_RATE_MOST)?,
    })
}

/// Returns the set points of a list, in which NaN is none; refuses a list that is too long, and
/// infinite set points.
fn axes(list: Option<Vector<'_, f32>>) -> Result<Axes, Error> {
    let mut axes = Axes::NONE;
    let list = list.unwrap_or_default();
    length("axes", list.len(), axes.0.len())?;
    for (axis, set_point) in axes.0.iter_mut().zip(list).filter(|(_, it)| !it.is_nan()) {
        *axis = number("axes", set_point, f32::MIN, f32::MAX)?;
    }
    Ok(axes)
}

/// A deliberate act, repeated in every command until the guard reports it done or refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Act {
    /// Number of the act, counted per console from 1 on.
    pub number: u32,
    /// Argument of the deed: number of the stop that a [`Deed::Reset`] names, or of the action of a
    /// [`Deed::Request`]; 0 for any other deed.
    pub stop: u32,
    /// Action that the person requests.
    pub deed: Deed,
}

choice! {
    /// An action that a person requests of the guard once.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum Deed of wire_command::Deed, "deed" {
        /// Permit driving from now on.
        Arm,
        /// Release the latch of the named stop; the machine stays held.
        Reset,
        /// Hold the machine where it stands; the guard refuses this while the machine moves.
        Park,
        /// Take over from the console that names this one as its successor.
        TakeOver,
        /// Turn the wheels of an armed machine a little to the left, to the right and back.
        CheckSteering,
        /// Confirm that the wheels turned as the picture shows.
        SteeringAgrees,
        /// Report that the picture is mirrored or the wheels turned the wrong way; the machine is
        /// held until a reset.
        SteeringWrong,
        /// Report that the person cannot see which way the wheels turned.
        SteeringUnseen,
        /// Ask the machine for a declared action.
        Request,
    }
}

kinds!(Gear of wire_command::Gear, "gear", [Drive, Reverse]);
kinds!(DeadMan of wire_command::DeadMan, "dead_man", [Absent, Held, Released]);

const KIND: Kind = Kind {
    name: "command",
    identifier: Some(wire_command::COMMAND_IDENTIFIER),
    bytes_max: 256,
    tables_max: 1,
    depth_max: 1,
};

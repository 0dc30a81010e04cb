use tautline_guard::Motion;
use tautline_guard::config::Config;

use crate::car;

/// A kind of simulated machine.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Kind {
    /// A car: steering, throttle and brake.
    #[default]
    Car,
    /// A delivery robot on two driven wheels and a castor.
    Robot,
    /// A rover on two tracks, which slip when it turns.
    Rover,
    /// A cart on four mecanum wheels, which also drives sideways.
    Cart,
}

/// Dimensions of a machine and place of its camera, in metres. The reference point is the middle of
/// the rear axle, of the driven wheels, or of the tracks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Body {
    /// Distance from the reference point to the front.
    pub(crate) front: f64,
    /// Distance from the reference point to the tail.
    pub(crate) rear: f64,
    /// Half of the width.
    pub(crate) half_width: f64,
    /// Distance between the axles, or the length of the tracks on the ground.
    pub(crate) wheelbase: f64,
    /// Distance from the reference point forward to the camera.
    pub(crate) camera_mount: f64,
    /// Height of the camera above the ground.
    pub(crate) camera_height: f64,
    /// True if a bonnet is in the picture.
    pub(crate) has_bonnet: bool,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Car, Self::Robot, Self::Rover, Self::Cart];

    /// Returns the guard's settings with the numbers of this machine, which are complete.
    pub fn settings(self) -> Config {
        match self {
            Self::Car => Config::car(),
            Self::Robot => Config::robot(),
            Self::Rover => Config::rover(),
            Self::Cart => Config::cart(),
        }
    }

    /// Returns how this machine moves.
    pub fn motion(self) -> Motion {
        self.settings().machine.motion
    }

    /// Returns the share of a turn that the tracks or wheels lose by slip on asphalt.
    pub fn slip(self) -> f64 {
        match self {
            Self::Car | Self::Robot => 0.0,
            Self::Rover => 0.3,
            Self::Cart => 0.05,
        }
    }

    pub(crate) fn body(self) -> &'static Body {
        match self {
            Self::Car => &CAR,
            Self::Robot => &ROBOT,
            Self::Rover => &ROVER,
            Self::Cart => &CART,
        }
    }
}

const CAR: Body = Body {
    front: car::FRONT,
    rear: car::REAR,
    half_width: car::HALF_WIDTH,
    wheelbase: car::WHEELBASE,
    camera_mount: 1.35,
    camera_height: 1.25,
    has_bonnet: true,
};
const ROBOT: Body = Body {
    front: 0.55,
    rear: 0.25,
    half_width: 0.3,
    wheelbase: 0.4,
    camera_mount: 0.5,
    camera_height: 0.5,
    has_bonnet: false,
};
const ROVER: Body = Body {
    front: 0.6,
    rear: 0.6,
    half_width: 0.5,
    wheelbase: 0.9,
    camera_mount: 0.55,
    camera_height: 0.7,
    has_bonnet: false,
};
const CART: Body = Body {
    front: 0.4,
    rear: 0.4,
    half_width: 0.35,
    wheelbase: 0.5,
    camera_mount: 0.35,
    camera_height: 0.9,
    has_bonnet: false,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_as_long_as_the_guard_is_told() {
        for kind in [Kind::Robot, Kind::Rover, Kind::Cart] {
            let (body, machine) = (kind.body(), kind.settings().machine);
            assert!((body.front + body.rear - f64::from(machine.length)).abs() < 1e-6, "{kind:?}");
            assert!(2.0 * body.half_width > f64::from(machine.track_width), "{kind:?}");
            assert!(body.camera_mount < body.front, "{kind:?}");
        }
        assert_eq!(Kind::default().motion(), Motion::Ackermann);
    }
}

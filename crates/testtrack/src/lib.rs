//! A simulated car and robots, a course with cones and a windscreen camera.
//!
//! [`World`] moves the car, [`Camera`] draws the driver's view, and [`Autopilot`] drives without a
//! person. [`SimulatedCar`] and [`Windscreen`] provide the two as a machine and as a sensor;
//! [`SimulatedRobot`] is a machine of another [`Kind`]. With a [`Follower`] the camera shows the
//! view from a machine in another process. This crate knows no links
//! and no packets. All output depends only on a seed and on the calls made. No clock is read, and
//! no function of the platform's mathematics library is used, because its rounding may differ
//! between machines.
#![forbid(unsafe_code)]

mod autopilot;
mod camera;
mod car;
mod cone;
mod course;
mod equipment;
mod follower;
mod kind;
mod machine;
mod noise;
mod robot;
mod sensor;
mod trig;
mod world;

pub use autopilot::Autopilot;
pub use camera::Camera;
pub use car::{CarState, Conditions, STEERING_ANGLE_MAX, WHEELBASE};
pub use course::{Course, KERB_WIDTH, Place, ROAD_HALF_WIDTH, Waypoint};
pub use follower::Follower;
pub use kind::Kind;
pub use machine::SimulatedCar;
pub use robot::SimulatedRobot;
pub use sensor::Windscreen;
pub use world::{Viewpoint, World};

//! A simulated car, a course with cones and a windscreen camera.
//!
//! [`World`] moves the car, [`Camera`] draws what its driver sees, [`Autopilot`] drives when nobody
//! does. [`SimulatedCar`] and [`Windscreen`] are the two as a machine and as a sensor;
//! a [`Follower`] lets the camera see from a car in another process. Knows no links and no packets. Everything is a function of a seed and of the calls made:
//! no clock is read, and no function of the platform's mathematics library is used whose rounding
//! differs between machines.
#![forbid(unsafe_code)]

mod autopilot;
mod camera;
mod car;
mod cone;
mod course;
mod follower;
mod machine;
mod noise;
mod sensor;
mod trig;
mod world;

pub use autopilot::Autopilot;
pub use camera::Camera;
pub use car::{CarState, Conditions, STEERING_ANGLE_MAX, WHEELBASE};
pub use course::{Course, KERB_WIDTH, Place, ROAD_HALF_WIDTH, Waypoint};
pub use follower::Follower;
pub use machine::SimulatedCar;
pub use sensor::Windscreen;
pub use world::{Viewpoint, World};

//! What a vehicle moves and sees with.

use anyhow::Context;
use tautline_guard::Machine;
use tautline_testtrack::SimulatedCar;
use tautline_vehicle::{Config, camera};
use tautline_video::Sensor;

/// Returns the machine and the sensor that the configuration names: the simulated car, and its
/// windscreen camera unless another source is given.
///
/// Another machine is another implementation of [`Machine`], chosen here by a setting.
///
/// # Errors
/// One line that says what is wrong with the source.
pub(crate) fn open(config: &Config) -> anyhow::Result<(Box<dyn Machine + Send>, Box<dyn Sensor>)> {
    let car = SimulatedCar::new(config.seed);
    let sensor = match camera::open(config)? {
        Some(sensor) => sensor,
        None => {
            let windscreen = car.windscreen(config.pictures_per_second);
            Box::new(windscreen.context("the simulated camera cannot be made")?)
        }
    };
    Ok((Box::new(car), sensor))
}

//! What a vehicle moves and sees with.

use anyhow::Context;
use tautline_guard::Machine;
use tautline_testtrack::SimulatedCar;
use tautline_vehicle::{Config, OpenSensor, camera};

/// Returns the machine that the configuration names, and what opens its sensor: the simulated car, and
/// its windscreen camera unless another source is given.
///
/// Another machine is another implementation of [`Machine`], chosen here by a setting.
pub(crate) fn open(config: &Config) -> (Box<dyn Machine + Send>, OpenSensor) {
    let car = SimulatedCar::new(config.seed);
    let windscreens = car.windscreens(config.pictures_per_second);
    let config = config.clone();
    let open_sensor = move || {
        Ok(match camera::open(&config)? {
            Some(sensor) => sensor,
            None => Box::new(windscreens().context("the simulated camera cannot be made")?),
        })
    };
    (Box::new(car), Box::new(open_sensor))
}

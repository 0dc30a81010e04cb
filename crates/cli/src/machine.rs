//! What a vehicle sees with, and how it follows a machine that moves in another process.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use anyhow::Context;
use tautline_guard::{Extra, MachineState};
use tautline_net::clock::Clock;
use tautline_testtrack::{Follower, Windscreen};
use tautline_vehicle::{Config, Follow, OpenSensor, camera};

/// Returns what follows the machine, and what opens the sensor that the configuration names: a
/// windscreen camera on the test track, which sees from where the machine says that it is, unless
/// another source is given.
///
/// The machine itself is behind the guard's port: `tautline car`, or any other.
pub(crate) fn open(config: &Config) -> (Follow, OpenSensor) {
    let clock = Clock::start();
    let follower = Arc::new(Mutex::new(Follower::new(config.seed)));
    let followed = follower.clone();
    // Where another camera looks, nobody here knows.
    let sees_track = config.source().is_none();
    let mut cones_hit = 0;
    let follow = move |state: &MachineState| {
        let follower = match followed.try_lock() {
            Ok(follower) => Some(follower),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            // A camera that hangs must not hold up who speaks to the guard.
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(mut follower) = follower {
            follower.handle(state, clock.now());
            cones_hit = follower.cones_hit();
        }
        let mut extras = vec![Extra { name: "cones hit", value: cones_hit.into(), unit: "" }];
        if sees_track {
            extras.extend(Windscreen::GEOMETRY);
        }
        extras
    };
    let config = config.clone();
    let open_sensor = move || {
        Ok(match camera::open(&config)? {
            Some(sensor) => sensor,
            None => {
                let follower = follower.clone();
                let view = move || {
                    follower.lock().unwrap_or_else(PoisonError::into_inner).view(clock.now())
                };
                let windscreen = Windscreen::new(view, config.pictures_per_second);
                Box::new(windscreen.context("the simulated camera cannot be made")?)
            }
        })
    };
    (Box::new(follow), Box::new(open_sensor))
}

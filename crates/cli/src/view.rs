//! A vehicle's picture source, and its connection to the state of a machine in another process.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use anyhow::Context;
use tautline_guard::{Extra, MachineState};
use tautline_net::clock::Clock;
use tautline_testtrack::{Follower, Windscreen};
use tautline_vehicle::{Config, Follow, OpenSensor, camera};

use crate::machine::kind;

/// Returns the callback that follows the machine and returns its extra values, and the function
/// that opens the configured sensor. Without another source the sensor is a windscreen camera on
/// the test track, at the position that the machine reports.
///
/// The machine itself is behind the guard's port: `tautline machine`, or any other.
pub(crate) fn open(config: &Config) -> (Follow, OpenSensor) {
    match config.source() {
        Some(_) => open_source(config),
        None => open_test_track(config),
    }
}

/// Opens the configured source; its geometry is known only where the settings give it.
fn open_source(config: &Config) -> (Follow, OpenSensor) {
    let geometry = config.camera_geometry.map(|measured| measured.extras());
    let geometry: Vec<Extra> = geometry.into_iter().flatten().collect();
    let config = config.clone();
    let open_sensor =
        move || camera::open(&config)?.context("the settings name no source of pictures");
    (Box::new(move |_| geometry.clone()), Box::new(open_sensor))
}

/// Opens the simulated camera on the test track, which follows the machine there and counts the
/// cones that it hits.
fn open_test_track(config: &Config) -> (Follow, OpenSensor) {
    let (clock, kind) = (Clock::start(), kind(config.machine));
    let follower = Arc::new(Mutex::new(Follower::new(kind, config.seed)));
    let followed = follower.clone();
    let measured = config.camera_geometry.map(|measured| measured.extras());
    let geometry = measured.unwrap_or(Windscreen::geometry(kind));
    let mut cones_hit = 0;
    let follow = move |state: &MachineState| {
        let follower = match followed.try_lock() {
            Ok(follower) => Some(follower),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            // A hung camera must not block the thread that communicates with the guard.
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(mut follower) = follower {
            follower.handle(state, clock.now());
            cones_hit = follower.cones_hit();
        }
        let cones = Extra { name: "cones hit", value: cones_hit.into(), unit: "" };
        [cones].into_iter().chain(geometry).collect()
    };
    let pictures_per_second = config.pictures_per_second;
    let open_sensor = move || {
        let follower = follower.clone();
        let view =
            move || follower.lock().unwrap_or_else(PoisonError::into_inner).view(clock.now());
        let windscreen = Windscreen::new(view, pictures_per_second);
        let windscreen = windscreen.context("the simulated camera cannot be made")?;
        Ok(Box::new(windscreen) as Box<_>)
    };
    (Box::new(follow), Box::new(open_sensor))
}

#[cfg(test)]
mod tests {
    use tautline_testtrack::Kind;
    use tautline_vehicle::CameraGeometry;

    use super::*;

    fn told(settings: &str) -> Vec<Extra> {
        let config: Config = toml::from_str(settings).unwrap();
        let (mut follow, _) = open(&config);
        follow(&MachineState::default())
    }

    const REAL: [&str; 2] = ["clip = \"drive.mp4\"", "camera = \"/dev/video0\""];
    const MEASURED: &str = "\n[camera_geometry]\nheight_m = 1.4\npitch_degrees = 3\nfield_of_view_degrees = 70\n\
        to_front_m = 2.1\nto_rear_axle_m = 1.35\nwidth_m = 1.8\nwheelbase_m = 2.6\n";

    #[test]
    fn a_configured_camera_geometry_is_reported_for_every_source() {
        let measured = CameraGeometry {
            height: 1.4,
            pitch: 3.0,
            field_of_view: 70.0,
            to_front: 2.1,
            to_rear_axle: 1.35,
            width: 1.8,
            wheelbase: 2.6,
        };
        for source in REAL {
            assert_eq!(told(&format!("{source}{MEASURED}")), measured.extras(), "{source}");
        }
        assert_eq!(told(MEASURED)[1..], measured.extras());
    }

    #[test]
    fn a_vehicle_with_another_source_reports_no_cones() {
        for source in REAL {
            assert_eq!(told(source), [], "{source}");
        }
        let simulated = told("");
        assert_eq!(simulated[0], Extra { name: "cones hit", value: 0.0, unit: "" });
    }

    #[test]
    fn the_simulated_camera_reports_the_same_named_extras() {
        let names =
            |extras: &[Extra]| extras.iter().map(|it| (it.name, it.unit)).collect::<Vec<_>>();
        let (simulated, measured) = (told(""), told(MEASURED));
        assert_eq!(simulated[1..], Windscreen::geometry(Kind::Car));
        let robot = told("machine = \"robot\"");
        assert_eq!(robot[1..], Windscreen::geometry(Kind::Robot));
        assert_eq!(names(&simulated), names(&measured));
    }
}

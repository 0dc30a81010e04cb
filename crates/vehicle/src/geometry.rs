use serde::{Deserialize, Serialize};
use tautline_guard::Extra;
use tautline_net::settings::Faults;
use tautline_units::Bounded;

/// Position and view of the camera towards the road, as measured at the vehicle; without lens
/// distortion.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CameraGeometry {
    /// Height of the camera above the road in m.
    #[serde(rename = "height_m")]
    pub height: f64,
    /// Downward tilt in degrees, negative upwards.
    #[serde(rename = "pitch_degrees")]
    pub pitch: f64,
    /// Horizontal field of view in degrees.
    #[serde(rename = "field_of_view_degrees")]
    pub field_of_view: f64,
    /// Distance from the camera forward to the front bumper in m.
    #[serde(rename = "to_front_m")]
    pub to_front: f64,
    /// Distance from the camera back to the rear axle in m.
    #[serde(rename = "to_rear_axle_m")]
    pub to_rear_axle: f64,
    /// Width of the vehicle in m.
    #[serde(rename = "width_m")]
    pub width: f64,
    /// Wheelbase in m.
    #[serde(rename = "wheelbase_m")]
    pub wheelbase: f64,
}

impl CameraGeometry {
    /// Checks the range of every field, and that the front is ahead of the rear axle.
    ///
    /// # Errors
    /// Returns a line for each invalid field, with what is required.
    pub fn validate(&self) -> anyhow::Result<()> {
        let fields = [
            ("camera_geometry.height_m", self.height, 0.05, 20.0),
            ("camera_geometry.pitch_degrees", self.pitch, -60.0, 60.0),
            ("camera_geometry.field_of_view_degrees", self.field_of_view, 1.0, 170.0),
            ("camera_geometry.to_front_m", self.to_front, 0.0, 20.0),
            ("camera_geometry.to_rear_axle_m", self.to_rear_axle, 0.0, 20.0),
            ("camera_geometry.width_m", self.width, 0.1, 10.0),
            ("camera_geometry.wheelbase_m", self.wheelbase, 0.1, 20.0),
        ];
        let mut faults = Faults::default();
        for (name, value, least, most) in fields {
            faults.of(Bounded::new(name, value, least..=most).check());
        }
        let front = self.to_rear_axle + self.to_front;
        faults.unless(front != 0.0, || {
            "camera_geometry.to_front_m = 0: the front must be ahead of the rear axle".to_owned()
        });
        faults.finish()
    }

    /// Returns the values by which a console draws distances on the road; `console/src/road.ts`
    /// reads them by name.
    pub fn extras(&self) -> [Extra; 8] {
        let focal = 0.5 / (self.field_of_view.to_radians() / 2.0).tan();
        let front = self.to_rear_axle + self.to_front;
        [
            Extra { name: "camera height", value: self.height, unit: "m" },
            Extra { name: "camera before rear axle", value: self.to_rear_axle, unit: "m" },
            Extra { name: "camera focal length", value: focal, unit: "widths" },
            Extra { name: "camera centre", value: 0.5, unit: "heights" },
            Extra { name: "camera pitch", value: self.pitch, unit: "°" },
            Extra { name: "front before rear axle", value: front, unit: "m" },
            Extra { name: "half width", value: self.width / 2.0, unit: "m" },
            Extra { name: "wheelbase", value: self.wheelbase, unit: "m" },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEASURED: CameraGeometry = CameraGeometry {
        height: 1.4,
        pitch: 3.0,
        field_of_view: 70.0,
        to_front: 2.1,
        to_rear_axle: 1.35,
        width: 1.8,
        wheelbase: 2.6,
    };

    #[test]
    fn measured_geometry_is_converted_for_the_console() {
        MEASURED.validate().unwrap();
        let told = MEASURED.extras();
        let value = |name| told.iter().find(|extra| extra.name == name).unwrap().value;
        assert!((value("camera focal length") - 0.714).abs() < 1e-3);
        assert!((value("front before rear axle") - 3.45).abs() < 1e-9);
        assert_eq!([value("camera height"), value("camera pitch")], [1.4, 3.0]);
        assert_eq!([value("half width"), value("wheelbase")], [0.9, 2.6]);
        assert_eq!([value("camera before rear axle"), value("camera centre")], [1.35, 0.5]);
    }

    #[test]
    fn impossible_geometry_is_refused_by_name() {
        let refused = |change: fn(&mut CameraGeometry)| {
            let mut geometry = MEASURED;
            change(&mut geometry);
            geometry.validate().unwrap_err().to_string()
        };
        let told = refused(|it| it.field_of_view = 180.0);
        assert_eq!(told, "camera_geometry.field_of_view_degrees = 180: must be 1 to 170 degrees");
        assert!(refused(|it| it.field_of_view = 0.0).contains("field_of_view_degrees = 0:"));
        assert!(refused(|it| it.height = -1.0).contains("height_m = -1:"));
        assert!(refused(|it| it.height = f64::NAN).contains("height_m = NaN:"));
        assert!(refused(|it| it.pitch = f64::INFINITY).contains("pitch_degrees = inf:"));
        assert!(refused(|it| it.to_front = -0.1).contains("to_front_m"));
        assert!(refused(|it| it.to_rear_axle = 21.0).contains("to_rear_axle_m"));
        assert!(refused(|it| it.width = 0.0).contains("width_m"));
        assert!(refused(|it| it.wheelbase = 0.0).contains("wheelbase_m"));
        assert!(refused(|it| (it.to_front, it.to_rear_axle) = (0.0, 0.0)).contains("to_front_m"));
    }
}

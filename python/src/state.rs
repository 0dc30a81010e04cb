//! The state of a machine, from Python's names.

use pyo3::prelude::*;
use pyo3::types::PyMapping;
use tautline_guard::{
    Fault, Faults, Gear, MachineState, Notice, Notices, Place, Position, Reported,
};
use tautline_port::detached::Done;

use crate::describe::Names;
use crate::names::{name_of, named};

/// Fields of Python's `State`.
#[derive(FromPyObject)]
pub(crate) struct State<'py> {
    speed: f32,
    sideways: f32,
    yaw_rate: f32,
    steering_angle: f32,
    gear: String,
    position: Option<(f32, f32, f32)>,
    place: Option<(f64, f64, f32)>,
    #[pyo3(from_py_with = pairs)]
    axes: Vec<(String, Bound<'py, PyAny>)>,
    #[pyo3(from_py_with = texts)]
    actions: Vec<String>,
    #[pyo3(from_py_with = pairs)]
    values: Vec<(String, Bound<'py, PyAny>)>,
    #[pyo3(from_py_with = texts)]
    faults: Vec<String>,
    #[pyo3(from_py_with = texts)]
    notices: Vec<String>,
    acceleration_along: Option<f32>,
    acceleration_across: Option<f32>,
    charge: Option<f32>,
}

impl State<'_> {
    /// Returns the state as the guard gets it, and the readings of the declared values.
    ///
    /// # Errors
    /// A `ValueError` for a name that does not exist or is not declared.
    pub(crate) fn read(&self, declared: &Names, is_accepted: bool) -> PyResult<Done> {
        let mut faults = Faults::NONE;
        for name in &self.faults {
            faults = faults.with(named(Fault::ALL, name, "fault")?);
        }
        let mut notices = Notices::NONE;
        for name in &self.notices {
            notices = notices.with(named(Notice::ALL, name, "notice")?);
        }
        let axes = self.axes.iter().map(|(name, value)| Ok((name.clone(), value.extract()?)));
        let state = MachineState {
            speed: self.speed,
            sideways_speed: self.sideways,
            yaw_rate: self.yaw_rate,
            steering_angle: self.steering_angle,
            gear: named(Gear::ALL, &self.gear, "gear")?,
            position: self.position.map(|(x, y, heading)| Position { x, y, heading }),
            place: self.place.map(|(latitude, longitude, height)| Place {
                latitude,
                longitude,
                height,
            }),
            faults,
            notices,
            axes: declared.axes(&axes.collect::<PyResult<Vec<_>>>()?)?,
            actions: declared.actions(&self.actions)?,
            told: Reported {
                acceleration_along: self.acceleration_along,
                acceleration_across: self.acceleration_across,
                charge: self.charge,
            },
            ..MachineState::default()
        };
        Ok(Done { state, readings: declared.readings(&self.values)?, is_accepted })
    }
}

/// Returns the entries of a dictionary.
fn pairs<'py>(mapping: &Bound<'py, PyAny>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    mapping.cast::<PyMapping>()?.items()?.extract()
}

/// Returns the texts of a list, tuple or set.
fn texts(collection: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    collection.try_iter()?.map(|text| text?.extract()).collect()
}

/// Returns the names of all faults, in their order.
pub(crate) fn faults() -> Vec<String> {
    Fault::ALL.iter().map(name_of).collect()
}

/// Returns the names of all notices.
pub(crate) fn notices() -> Vec<String> {
    Notice::ALL.iter().map(name_of).collect()
}

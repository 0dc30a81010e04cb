//! The native part of Tautline's Python package. The package itself is `tautline/`; it alone calls
//! this module.
#![deny(unsafe_code)]

mod describe;
mod file;
mod log;
mod names;
mod operator;
mod records;
mod safe;
mod serve;
mod state;
mod stop;

use pyo3::prelude::*;

/// Native part of the package `tautline`.
#[pymodule]
mod _tautline {
    #[pymodule_export]
    use crate::operator::{Console, Shown};
    #[pymodule_export]
    use crate::records::{RecordFile, record_files};
    #[pymodule_export]
    use crate::safe::Safe;
    #[pymodule_export]
    use crate::serve::{keep_watch, serve};
    #[pymodule_export]
    use crate::stop::Stop;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("FAULTS", crate::state::faults())?;
        module.add("NOTICES", crate::state::notices())?;
        module.add("VERSION", env!("CARGO_PKG_VERSION"))
    }
}

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

/// Request to end `serve`, from any thread.
#[pyclass(module = "tautline", frozen)]
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Requests the end: the machine is brought to a standstill, then `serve` returns.
    #[pyo3(name = "set")]
    pub(crate) fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether the end was requested.
    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Stop {
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.0
    }
}

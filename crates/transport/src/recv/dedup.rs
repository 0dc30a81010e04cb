use crate::crypto::{Verdict, Window};

/// Which units of one class are finished: delivered, lost or overtaken.
///
/// A packet of a finished unit is surplus; one of a unit older than the last 2048 is out of range.
#[derive(Debug, Clone)]
pub(crate) struct Finished {
    window: Window,
}

impl Finished {
    pub(crate) fn new() -> Self {
        Self { window: Window::new() }
    }

    pub(crate) fn check(&self, number: u64) -> Verdict {
        self.window.check(number)
    }

    pub(crate) fn note(&mut self, number: u64) {
        self.window.note(number);
    }
}

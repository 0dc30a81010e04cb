//! Which columns are refreshed and where vectors may point (stage: none).

use super::plane::MARGIN;
use super::vector::Window;

/// What holds a slice's prediction.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    window: Window,
}

impl Reach {
    pub(super) fn free(width: usize, height: usize) -> Self {
        let most = MARGIN as i32 - 8;
        let window = Window {
            left: -most,
            right: width as i32 + most,
            top: -most,
            bottom: height as i32 + most,
        };
        Self { window }
    }

    pub(super) fn window(&self, _column: usize) -> Window {
        self.window
    }

    pub(super) fn is_refreshed(&self, _column: usize) -> bool {
        false
    }

    pub(super) fn is_constrained(&self) -> bool {
        false
    }
}

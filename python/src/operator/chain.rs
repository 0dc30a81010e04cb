use tautline_video::SliceKind;

/// State of a strip: it is clean if nothing was lost that its content is predicted from. The same
/// rule as the page's (console/src/video/seen.ts).
#[derive(Debug, Default)]
pub(super) struct Chain {
    is_clean: bool,
    /// Number of slices after the newest lost one.
    unbroken: u32,
}

impl Chain {
    /// Handles the next decoded slice, with the number of earlier slices that it depends on (`None`
    /// if unknown). Returns whether the strip is clean with it.
    pub(super) fn take(&mut self, kind: SliceKind, history: Option<u8>, is_corrupt: bool) -> bool {
        match kind {
            SliceKind::Idr => (self.is_clean, self.unbroken) = (true, 1),
            SliceKind::Skip => (self.is_clean, self.unbroken) = (false, 0),
            SliceKind::Predicted => {
                self.unbroken = self.unbroken.saturating_add(1);
                let whole = |history: u8| history < LONG && self.unbroken > u32::from(history);
                self.is_clean |= history.is_some_and(whole);
            }
        }
        self.is_clean &= !is_corrupt;
        self.is_clean
    }
}

/// Value that stands for every history of at least this length.
const LONG: u8 = 254;

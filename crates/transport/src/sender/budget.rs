use tautline_units::Bitrate;

use crate::event::Event;

/// The media budget as last reported to the application.
#[derive(Debug, Default)]
pub(super) struct Budget {
    /// Last reported budget; `None` before the first report.
    told: Option<Bitrate>,
    /// Measured capacity of the links when the budget was last reported.
    shown: Bitrate,
}

impl Budget {
    /// Returns whether the last reported budget is above zero.
    pub(super) fn is_told(&self) -> bool {
        self.told.is_some_and(|told| told > Bitrate::ZERO)
    }

    /// Returns the event with the budget `media` if it is due: since the last report, the budget
    /// has become zero or nonzero or has changed by more than 2 %, or the measured capacity `shown`
    /// has grown by more than a quarter while the budget is nonzero.
    pub(super) fn update(&mut self, media: Bitrate, shown: Bitrate) -> Option<Event> {
        let more = media > Bitrate::ZERO && shown > self.shown.scale(1.0 + SHOWN_NEWS);
        let news = match self.told {
            None => media != Bitrate::ZERO,
            Some(told) => {
                let (low, high) = (told.scale(1.0 - NEWS), told.scale(1.0 + NEWS));
                (media == Bitrate::ZERO) != (told == Bitrate::ZERO) || media < low || media > high
            }
        };
        if !news && !more {
            return None;
        }
        (self.told, self.shown) = (Some(media), shown);
        Some(Event::Budget { media, shown })
    }
}

/// Relative change of the budget above which it is reported: an encoder's own rate varies by more.
const NEWS: f64 = 0.02;
const SHOWN_NEWS: f64 = 0.25;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_reported_once_and_on_changes() {
        let mut budget = Budget::default();
        let mut update = |media: Bitrate, shown: Bitrate| match budget.update(media, shown) {
            Some(Event::Budget { media, .. }) => Some(media),
            Some(_) | None => None,
        };
        let [full, more, less] = [14_028, 14_072, 13_590].map(Bitrate::from_kbps);
        let [some, hardly_more, twice] = [1_000, 1_200, 2_000].map(Bitrate::from_kbps);
        assert_eq!(update(Bitrate::ZERO, some), None, "nothing may be sent");
        assert_eq!(update(full, some), Some(full));
        assert_eq!(update(more, hardly_more), None);
        assert_eq!(update(more, twice), Some(more));
        assert_eq!(update(more, some), None, "nothing is taken back");
        assert_eq!(update(less, some), Some(less));
        assert_eq!(update(Bitrate::ZERO, some), Some(Bitrate::ZERO));
        assert_eq!(update(Bitrate::ZERO, twice), None);
    }
}

use tautline_units::Bitrate;

/// The budget as the application was last told it.
#[derive(Debug, Default)]
pub(super) struct Budget {
    told: Option<Bitrate>,
}

impl Budget {
    /// Returns whether the application was last told more than zero.
    pub(super) fn is_told(&self) -> bool {
        self.told.is_some_and(|told| told > Bitrate::ZERO)
    }

    /// Returns the budget, when it is news: it began, ended, or moved by a fiftieth.
    pub(super) fn update(&mut self, media: Bitrate) -> Option<Bitrate> {
        let news = match self.told {
            None => media != Bitrate::ZERO,
            Some(told) => {
                let (low, high) = (told.scale(1.0 - NEWS), told.scale(1.0 + NEWS));
                (media == Bitrate::ZERO) != (told == Bitrate::ZERO) || media < low || media > high
            }
        };
        if news {
            self.told = Some(media);
        }
        news.then_some(media)
    }
}

/// Below a fiftieth an encoder's own swings are larger.
const NEWS: f64 = 0.02;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_told_once_and_when_it_moves() {
        let mut budget = Budget::default();
        assert_eq!(budget.update(Bitrate::ZERO), None);
        let [full, more, less] = [14_028, 14_072, 13_590].map(Bitrate::from_kbps);
        assert_eq!(budget.update(full), Some(full));
        assert_eq!(budget.update(more), None);
        assert!(budget.update(less).is_some());
        assert_eq!(budget.update(Bitrate::ZERO), Some(Bitrate::ZERO));
        assert_eq!(budget.update(Bitrate::ZERO), None);
    }
}

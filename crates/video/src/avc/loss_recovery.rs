use std::fmt;

use crate::Error;

/// Ways in which a strip's encoder recovers from a lost slice.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum LossRecovery {
    /// An IDR at the receiver's keyframe request.
    #[default]
    Idr,
    /// Intra refresh: a contiguous band of intra macroblocks that crosses the strip in `period`
    /// pictures, again and again. Any loss is gone within that many.
    IntraRefresh {
        /// 2 to 250.
        period: u8,
    },
    /// Intra refresh by columns of intra macroblocks, one in every `spacing`, that move by one each
    /// picture: [LTE] IV.A. Any loss is gone within `spacing` pictures.
    IntraColumns {
        /// 2 to 250.
        spacing: u8,
    },
    /// One intra refresh of `period` pictures after each loss that is reported
    /// ([`Refresh::Recover`](crate::Refresh::Recover)).
    IntraRefreshOnLoss {
        /// 2 to 250.
        period: u8,
    },
    /// Reference picture selection at every picture (H.263 Annex N's ACK mode): prediction only from
    /// pictures that the receiver has [acknowledged](super::StripEncoder::acknowledge), so that a loss
    /// harms no other picture. Where no acknowledgement comes within `references` pictures, an IDR is
    /// coded; where none has come since an IDR that is as far back, each picture is predicted from the
    /// one before until one does.
    AcknowledgedReferences {
        /// How many pictures back a picture may refer, 1 to 16.
        references: u8,
    },
    /// Reference picture selection after a loss (H.263 Annex N's NACK mode): one picture after each loss
    /// that is reported ([`Refresh::Recover`](crate::Refresh::Recover)) is predicted from the newest
    /// that the receiver has acknowledged, all others from the one before. The loss is gone with that
    /// one picture. If none of the last `references` pictures is acknowledged then, it is an IDR.
    ReferenceSelection {
        /// How many pictures back a picture may refer, 1 to 16.
        references: u8,
    },
    /// Of the two before the one that the losses ask for: reference picture selection after a loss, and at every
    /// picture while losses are [said](super::StripEncoder::provide_for_losses) to be many.
    ReferencesByLoss {
        /// How many pictures back a picture may refer, 1 to 16.
        references: u8,
    },
}

impl LossRecovery {
    /// Checks the number.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a number out of its range.
    pub(super) fn check(self) -> Result<(), Error> {
        let (what, value, range) = match self {
            Self::Idr => return Ok(()),
            Self::IntraRefresh { period } | Self::IntraRefreshOnLoss { period } => {
                ("refresh period", period, 2..=250)
            }
            Self::IntraColumns { spacing } => ("refresh spacing", spacing, 2..=250),
            Self::AcknowledgedReferences { references }
            | Self::ReferenceSelection { references }
            | Self::ReferencesByLoss { references } => ("references", references, 1..=16),
        };
        if range.contains(&value) {
            return Ok(());
        }
        Err(Error::Invalid { what, value: value.into() })
    }

    /// Returns how many pictures decoders keep to refer to.
    pub fn references(self) -> u32 {
        match self {
            Self::AcknowledgedReferences { references }
            | Self::ReferenceSelection { references }
            | Self::ReferencesByLoss { references } => references.into(),
            Self::Idr
            | Self::IntraRefresh { .. }
            | Self::IntraColumns { .. }
            | Self::IntraRefreshOnLoss { .. } => 1,
        }
    }
}

/// Writes what follows an encoder's name: nothing, or the way and its number.
impl fmt::Display for LossRecovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idr => Ok(()),
            Self::IntraRefresh { period } => write!(f, " intra refresh {period}"),
            Self::IntraColumns { spacing } => write!(f, " intra columns {spacing}"),
            Self::IntraRefreshOnLoss { period } => write!(f, " intra refresh {period} on loss"),
            Self::AcknowledgedReferences { references } => {
                write!(f, " acknowledged references {references}")
            }
            Self::ReferenceSelection { references } => {
                write!(f, " reference selection {references}")
            }
            Self::ReferencesByLoss { references } => write!(f, " references by loss {references}"),
        }
    }
}

use std::fmt;

use crate::Error;

/// Methods by which a strip's encoder recovers from a lost slice.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum LossRecovery {
    /// An IDR after each reported loss ([`Refresh::Recover`](crate::Refresh::Recover)), as after a
    /// receiver's keyframe request.
    #[default]
    Idr,
    /// Intra refresh: a contiguous band of intra macroblocks that crosses the strip every `period`
    /// pictures, continuously. It repairs any loss within that number of pictures.
    IntraRefresh {
        /// Number of pictures in which the band crosses the strip, 2 to 250.
        period: u8,
    },
    /// Intra refresh by columns of intra macroblocks, one in every `spacing`, that move by one each
    /// picture: [LTE] IV.A. It repairs any loss within `spacing` pictures.
    IntraColumns {
        /// Distance between intra columns in macroblocks, 2 to 250.
        spacing: u8,
    },
    /// One intra refresh over `period` pictures after each reported loss
    /// ([`Refresh::Recover`](crate::Refresh::Recover)).
    IntraRefreshOnLoss {
        /// Number of pictures that one refresh takes, 2 to 250.
        period: u8,
    },
    /// Reference picture selection at every picture (H.263 Annex N's ACK mode): prediction only
    /// from pictures that the receiver has [acknowledged](super::StripEncoder::acknowledge), so
    /// that a loss affects no other picture. If none of the last `references` pictures is
    /// acknowledged, the encoder codes an IDR; if no acknowledgement at all has arrived since the
    /// last IDR, it predicts each picture from the previous one instead, until one arrives.
    AcknowledgedReferences {
        /// Maximum distance of a reference in pictures, 1 to 16.
        references: u8,
    },
    /// Reference picture selection after a loss (H.263 Annex N's NACK mode). After each reported
    /// loss ([`Refresh::Recover`](crate::Refresh::Recover)), one picture is predicted from the
    /// newest acknowledged one; all others are predicted from the previous picture. That picture
    /// repairs the loss. It is an IDR if none of the last `references` pictures is acknowledged.
    ReferenceSelection {
        /// Maximum distance of a reference in pictures, 1 to 16.
        references: u8,
    },
    /// [`AcknowledgedReferences`](Self::AcknowledgedReferences) while losses are
    /// [set](super::StripEncoder::provide_for_losses) to be frequent, otherwise
    /// [`ReferenceSelection`](Self::ReferenceSelection).
    ReferencesByLoss {
        /// Maximum distance of a reference in pictures, 1 to 16.
        references: u8,
    },
}

impl LossRecovery {
    /// Checks that the number of the method is within its range.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a number outside its range.
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

    /// Returns the number of reference pictures that decoders keep.
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

/// Writes the suffix of an encoder's name: nothing, or the method and its number.
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

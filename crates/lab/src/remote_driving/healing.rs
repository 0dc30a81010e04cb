//! Ways to heal, in a closed loop: what is lost is known at the encoder a round trip later.

use anyhow::{Context, Result};
use tautline_video::avc::Healing;
use tautline_video::openh264::StripDecoder;
use tautline_video::{Backend, Concealer, Decoder, Picture, Refresh};

use crate::coding::{Coder, Size};

/// Is a way to code, and to heal.
#[derive(Clone)]
pub(super) struct Mode {
    pub(super) name: String,
    backend: Backend,
    answer: Answer,
}

/// Is what the encoder does about what it hears.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// Nothing.
    None,
    /// Nothing, for every picture is an IDR.
    IntraOnly,
    /// This, when a loss is heard of.
    Refresh(Refresh),
    /// It knows what it hears to have come, and begins to heal when a loss is heard of.
    Acknowledged,
}

impl Mode {
    /// Whether what is coded depends on what was lost.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.answer, Answer::Refresh(_) | Answer::Acknowledged)
    }

    /// Whether the mode heals only by what an encoder does at its stream's beginning.
    pub(super) fn never_heals(&self) -> bool {
        self.answer == Answer::None && self.backend == Backend::Avc(Healing::Idr)
    }

    /// Codes a strip at one quantizer, of which some pictures do not arrive (none beyond the end of
    /// `lost`).
    pub(super) fn code(
        &self,
        sources: &[Picture],
        qp: u8,
        rate: u32,
        lost: &[bool],
    ) -> Result<Vec<Vec<u8>>> {
        let first = sources.first().context("no pictures")?;
        let mut coder = Coder::open(self.backend, first.width(), first.height(), rate)?;
        let is_lost = |number: usize| lost.get(number).copied().unwrap_or(false);
        let mut coded = Vec::with_capacity(sources.len());
        for (number, source) in sources.iter().enumerate() {
            let heard = number.checked_sub(ROUND_TRIP);
            let refresh = match (self.answer, heard) {
                (Answer::IntraOnly, _) => Refresh::Idr,
                (Answer::Refresh(refresh), Some(heard)) if is_lost(heard) => refresh,
                (Answer::Acknowledged, Some(heard)) if is_lost(heard) => Refresh::Heal,
                (Answer::Acknowledged, Some(heard)) => {
                    coder.acknowledge(heard as u64);
                    Refresh::No
                }
                (Answer::None | Answer::Refresh(_), _) | (Answer::Acknowledged, None) => {
                    Refresh::No
                }
            };
            coded.push(coder.encode(source, Size::Quantizer(qp), refresh)?.bytes);
        }
        Ok(coded)
    }
}

/// Our own encoder in every way that it has, after intra and inter alone; x264's sweep, if there is
/// x264.
pub(super) fn modes() -> Vec<Mode> {
    let own = |name: &str, healing: Healing, answer: Answer| Mode {
        name: name.to_owned(),
        backend: Backend::Avc(healing),
        answer,
    };
    let (sweep, columns) =
        (Healing::Sweep { period: PERIOD }, Healing::Columns { spacing: PERIOD });
    let (on_loss, acknowledged, recall) = (
        Healing::OnLoss { period: PERIOD },
        Healing::Acknowledged { references: REFERENCES },
        Healing::Recall { references: REFERENCES },
    );
    vec![
        own(INTRA, Healing::Idr, Answer::IntraOnly),
        own(INTER, Healing::Idr, Answer::None),
        own("idr on loss", Healing::Idr, Answer::Refresh(Refresh::Idr)),
        own("refresh: sweep", sweep, Answer::None),
        own("refresh: columns", columns, Answer::None),
        own("refresh: on loss", on_loss, Answer::Refresh(Refresh::Heal)),
        own("acknowledged", acknowledged, Answer::Acknowledged),
        own("recall on loss", recall, Answer::Acknowledged),
        #[cfg(feature = "x264")]
        Mode {
            name: "refresh: x264 sweep".to_owned(),
            backend: Backend::X264(tautline_video::x264::Settings {
                refresh_period: PERIOD,
                ..Default::default()
            }),
            answer: Answer::None,
        },
    ]
}

/// Decodes a strip's slices: in the place of a lost one the picture before is shown again.
pub(super) fn show(coded: &[Vec<u8>], lost: &[bool]) -> Result<Vec<Picture>> {
    let (mut concealer, mut decoder) = (Concealer::new(), StripDecoder::new()?);
    let mut shown: Vec<Picture> = Vec::with_capacity(coded.len());
    for (number, bytes) in coded.iter().enumerate() {
        let bytes = match lost.get(number).copied().unwrap_or(false) {
            true => concealer.skip().context("the first slice is never lost")?.into(),
            false => concealer.pass(bytes)?.context("the first slice is an IDR")?,
        };
        shown.push(decoder.decode(&bytes)?.context("a slice gave no rows")?);
    }
    Ok(shown)
}

/// The sum of squared differences of the luma.
pub(super) fn error(shown: &Picture, source: &Picture) -> f64 {
    let squared = |(a, b): (&u8, &u8)| u64::from(a.abs_diff(*b)).pow(2);
    shown.luma().iter().zip(source.luma()).map(squared).sum::<u64>() as f64
}

/// Where a curve of (value, rate) has a value, between measurements by the rate's logarithm.
pub(super) fn rate_at(curve: &[(f64, f64)], value: f64) -> Option<f64> {
    let pair = curve.windows(2).find(|pair| (pair[0].0 >= value) != (pair[1].0 >= value))?;
    let share = (value - pair[0].0) / (pair[1].0 - pair[0].0);
    Some((pair[0].1.ln() + share * (pair[1].1.ln() - pair[0].1.ln())).exp())
}

/// The value that a curve of (value, rate) has at a rate.
pub(super) fn value_at(curve: &[(f64, f64)], rate: f64) -> Option<f64> {
    let pair = curve.windows(2).find(|pair| (pair[0].1 >= rate) != (pair[1].1 >= rate))?;
    let share = (rate / pair[0].1).ln() / (pair[1].1 / pair[0].1).ln();
    Some(pair[0].0 + share * (pair[1].0 - pair[0].0))
}

pub(super) const INTRA: &str = "intra";
pub(super) const INTER: &str = "inter";
/// The paper's: a loss heals within so many pictures.
pub(super) const PERIOD: u8 = 16;
/// Pictures until a loss is heard of: 100 ms at 60 a second.
pub(super) const ROUND_TRIP: usize = 6;
/// A round trip of pictures, and as many more that may be lost in a row.
const REFERENCES: u8 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_between_two_measurements_is_their_geometric_mean() {
        let curve = [(40.0, 8.0), (32.0, 2.0)];
        assert!((rate_at(&curve, 36.0).unwrap() - 4.0).abs() < 1e-9);
        assert_eq!(rate_at(&curve, 41.0), None);
        assert!((value_at(&curve, 4.0).unwrap() - 36.0).abs() < 1e-9);
        assert_eq!(value_at(&curve, 9.0), None);
    }
}

use anyhow::Result;

use super::{Entry, SOURCES, Setting, cu_fec, rlnc_simdx, tautline};
use crate::block::Family;
use crate::measure::{self, Contender, Effort, Timing};

/// Times of one code at one setting, per source packet.
pub(crate) struct Outcome {
    pub(crate) name: String,
    pub(crate) family: Family,
    pub(crate) encode: Timing,
    pub(crate) decode: Option<Timing>,
}

/// Measures, at one setting, all codes whose names `wanted` accepts.
///
/// # Errors
/// If a code produces wrong bytes, or loses packets.
pub(crate) fn measure(
    setting: Setting,
    wanted: impl Fn(&str, Family) -> bool,
    effort: Effort,
) -> Result<Vec<Outcome>> {
    let mut entries = tautline::entries(setting)?;
    entries.push(cu_fec::entry(setting)?);
    entries.push(rlnc_simdx::entry(setting)?);
    entries.retain(|entry| wanted(&entry.name, entry.family));

    let mut encoders: Vec<Contender<'static>> = Vec::new();
    let mut decoders: Vec<Contender<'static>> = Vec::new();
    let mut outcomes = Vec::new();
    for Entry { name, family, encode, decode } in entries {
        outcomes.push((name.clone(), family, decode.is_some()));
        encoders.push((name.clone(), encode));
        decoders.extend(decode.map(|decode| (name, decode)));
    }
    let encode = measure::in_turns(&mut encoders, 1, effort)?;
    let mut decode = measure::in_turns(&mut decoders, 1, effort)?.into_iter();
    Ok(outcomes
        .into_iter()
        .zip(encode)
        .map(|((name, family, decodes), encode)| Outcome {
            name,
            family,
            encode: encode.divided_by(SOURCES as f64),
            decode: decodes
                .then(|| decode.next().expect("as many as decode").divided_by(SOURCES as f64)),
        })
        .collect())
}

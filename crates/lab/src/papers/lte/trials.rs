//! Trials of all methods of loss recovery, at several quantizers, over all footage.

use anyhow::{Context, Result};

use super::loss_recovery::{Mode, Strips, modes};
use crate::experiment::Run;
use crate::pictures::footage::{Footage, Size, clips};
use crate::workers;

/// Footage length and quantizers of the trials.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    /// Pictures per footage.
    pub(super) pictures: usize,
    pub(super) quantizers: &'static [u8],
}

/// Note on the judgements and plots of [`Curves`](super::curves::Curves).
pub(super) const CLAIM: &str = "The paper's claim is of what it compared: intra alone, inter alone, \
     and refresh without a word from the receiver (here the cheaper of band and columns). Dashed are \
     the modes that hear of losses.";

/// Performs a `trial` of every mode at every quantizer, on all cores. `take` receives those of one
/// footage in the order of [`modes`], equally many of each. Returns a note about missing clips, if
/// any are missed.
pub(super) fn each<Trial: Send>(
    run: &Run<'_>,
    plan: Plan,
    trial: impl Fn(&Strips, Mode, u8) -> Result<Trial> + Sync,
    mut take: impl FnMut(&Strips, &[Trial]),
) -> Result<Option<String>> {
    let (clips, none) = if run.quick { (Vec::new(), None) } else { clips() };
    let jobs: Vec<(Mode, u8)> = modes()
        .into_iter()
        .flat_map(|mode| plan.quantizers.iter().map(move |qp| (mode, *qp)))
        .collect();
    let size = run.choose(Size::SMALL, Size::HD);
    let total = ((clips.len() + 1) * jobs.len()) as u64;
    let mut done = 0;
    run.progress(0, 1, "the first footage is made");
    Footage::each(&clips, size, RATE, plan.pictures, run.seed, |footage| {
        let footage = Strips::of(&footage)?;
        let trials = workers::each(
            workers::count(),
            &jobs,
            |(mode, qp)| {
                let trial = trial(&footage, *mode, *qp);
                let what = format!("{}, {} at {qp}", footage.name, mode.name);
                trial.with_context(|| what.clone()).map(|trial| (what, trial))
            },
            |made, (what, _)| run.progress(done + made as u64, total, what),
        )?;
        done += jobs.len() as u64;
        let trials: Vec<Trial> = trials.into_iter().map(|(_, trial)| trial).collect();
        take(&footage, &trials);
        Ok(())
    })?;
    Ok(none)
}

/// Pictures per second.
const RATE: u32 = 60;

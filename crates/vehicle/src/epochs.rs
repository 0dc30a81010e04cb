//! Check of lease epochs: a vehicle refuses an epoch lower than one it took, or far beyond it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use tautline_message::{EPOCH_STEP_MAX, Held};
use tautline_transport::crypto::PublicKey;

/// Newest lease taken; with a file, also across restarts of the process.
///
/// The file holds one line twice: `epoch 7, operator 1398f6..`. It is replaced atomically, and is
/// on disk before a session begins.
#[derive(Clone, Debug)]
pub(crate) struct Epochs {
    file: Option<PathBuf>,
    newest: Option<Taken>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Taken {
    epoch: u64,
    operator: PublicKey,
}

impl Epochs {
    /// Reads the state that an earlier run stored in `file`.
    ///
    /// # Errors
    /// Fails if the file exists and cannot be read or is invalid: an epoch is never guessed.
    pub(crate) fn open(file: Option<PathBuf>) -> anyhow::Result<Self> {
        let newest = match &file {
            None => None,
            Some(file) => read(file)?,
        };
        Ok(Self { file, newest })
    }

    /// Checks an offered lease of `epoch` with `operator`, and changes nothing; epoch 0, of a
    /// switchboard that does not count epochs, is refused once a lease with an epoch was taken.
    ///
    /// # Errors
    /// Returns why the lease is refused.
    pub(crate) fn judge(&self, epoch: u64, operator: &[u8; 32]) -> anyhow::Result<()> {
        let known = self.newest();
        ensure!(
            epoch.saturating_sub(known) <= EPOCH_STEP_MAX,
            "its lease has epoch {epoch}, more than {EPOCH_STEP_MAX} above {known}, the newest \
             known one: the switchboard's state is wrong; restore it from a backup, or {}",
            self.remedy()
        );
        let Some(newest) = self.newest else { return Ok(()) };
        ensure!(
            epoch >= newest.epoch,
            "its lease has epoch {epoch}, below the known epoch {}: if that one came from a \
             switchboard that no longer exists, {}",
            newest.epoch,
            self.remedy()
        );
        ensure!(
            epoch > newest.epoch || operator == newest.operator.as_bytes(),
            "its lease has epoch {epoch}, which belongs to another operator"
        );
        Ok(())
    }

    /// Returns what a person can do about a refused epoch who knows that no other switchboard
    /// leases this vehicle.
    fn remedy(&self) -> String {
        match &self.file {
            Some(file) => format!("stop this vehicle and remove {}", file.display()),
            None => "restart this vehicle".to_owned(),
        }
    }

    /// Records a lease that passed the check as the newest, on disk if there is a file; does
    /// nothing for epoch 0.
    ///
    /// # Errors
    /// Fails if the lease cannot be stored; then it is not taken.
    pub(crate) async fn take(&mut self, epoch: u64, operator: PublicKey) -> anyhow::Result<()> {
        let taken = Taken { epoch, operator };
        if epoch == 0 || self.newest == Some(taken) {
            return Ok(());
        }
        if let Some(file) = self.file.clone() {
            // A disk may take long to sync; telemetry must not wait for it.
            tokio::task::spawn_blocking(move || write(&file, taken)).await??;
        }
        self.newest = Some(taken);
        Ok(())
    }

    /// Returns the epoch of the newest lease taken; 0 if there was none.
    pub(crate) fn newest(&self) -> u64 {
        self.newest.map_or(0, |newest| newest.epoch)
    }

    /// Returns the newest lease to report to the switchboard; `None` if there was none. `lease` is
    /// the name of that lease while it lasts.
    pub(crate) fn held(&self, lease: Option<[u8; 16]>) -> Option<Held> {
        let Taken { epoch, operator } = self.newest?;
        Some(Held { lease, epoch, peer_key: *operator.as_bytes() })
    }
}

fn read(file: &Path) -> anyhow::Result<Option<Taken>> {
    let shown = file.display();
    let text = match tautline_net::file::read(file, tautline_net::file::TEXT_BYTES_MAX) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.with_context(|| format!("epoch: cannot read {shown}"))?,
    };
    let taken = parse(&text).with_context(|| {
        format!(
            "epoch: {shown} is damaged: remove it only if no older switchboard, and none restored \
             from a backup, can still lease this vehicle"
        )
    })?;
    Ok(Some(taken))
}

fn parse(text: &[u8]) -> Option<Taken> {
    let text = std::str::from_utf8(text).ok()?;
    let (line, again) = text.strip_suffix('\n')?.split_once('\n')?;
    let (epoch, operator) = line.strip_prefix("epoch ")?.split_once(", operator ")?;
    let taken = Taken { epoch: epoch.parse().ok()?, operator: operator.parse().ok()? };
    (line == again && taken.line() == line).then_some(taken)
}

fn write(file: &Path, taken: Taken) -> anyhow::Result<()> {
    let line = taken.line();
    tautline_net::file::replace(file, format!("{line}\n{line}\n").as_bytes())
        .with_context(|| format!("epoch: cannot write {}", file.display()))
}

impl Taken {
    fn line(&self) -> String {
        format!("epoch {}, operator {}", self.epoch, self.operator)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tautline_transport::crypto::Identity;

    use super::*;

    fn key(seed: u8) -> PublicKey {
        Identity::from_seed(&[seed; 32]).public()
    }

    fn take(epochs: &mut Epochs, epoch: u64, seed: u8) -> anyhow::Result<()> {
        epochs.judge(epoch, key(seed).as_bytes())?;
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        runtime.block_on(epochs.take(epoch, key(seed)))
    }

    #[test]
    fn a_lower_epoch_is_refused_across_restarts() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("epoch");
        let mut epochs = Epochs::open(Some(file.clone())).unwrap();
        assert_eq!(epochs.held(Some([1; 16])), None);
        // Leases without an epoch are all taken until the first epoch.
        take(&mut epochs, 0, 1).unwrap();
        take(&mut epochs, 0, 2).unwrap();
        take(&mut epochs, 7, 1).unwrap();
        take(&mut epochs, 7, 1).unwrap();
        for mut epochs in [epochs, Epochs::open(Some(file.clone())).unwrap()] {
            let refused = |epoch, seed: u8| {
                epochs.judge(epoch, key(seed).as_bytes()).unwrap_err().to_string()
            };
            let lower = refused(6, 1);
            assert!(
                lower.starts_with("its lease has epoch 6, below the known epoch 7: ")
                    && lower.contains(&file.display().to_string()),
                "{lower}"
            );
            assert!(refused(0, 1).contains("epoch 0"));
            assert_eq!(refused(7, 2), "its lease has epoch 7, which belongs to another operator");
            let held = Held { lease: Some([1; 16]), epoch: 7, peer_key: *key(1).as_bytes() };
            assert_eq!(epochs.held(Some([1; 16])), Some(held));
            take(&mut epochs, 7, 1).unwrap();
        }
        take(&mut Epochs::open(Some(file.clone())).unwrap(), 8, 2).unwrap();
        assert_eq!(Epochs::open(Some(file)).unwrap().held(None).unwrap().epoch, 8);
    }

    #[test]
    fn an_epoch_far_ahead_is_refused_and_blocks_no_later_lease() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("epoch");
        let mut epochs = Epochs::open(Some(file.clone())).unwrap();
        for known in [0, 7] {
            if known > 0 {
                take(&mut epochs, known, 1).unwrap();
            }
            for far in [u64::MAX, u64::MAX - 1, 1 << 63, known + EPOCH_STEP_MAX + 1] {
                for mut epochs in [epochs.clone(), Epochs::open(Some(file.clone())).unwrap()] {
                    let error = take(&mut epochs, far, 1).unwrap_err().to_string();
                    assert!(error.contains(&format!("above {known}, the newest")), "{error}");
                    assert!(error.contains("restore it from a backup"), "{error}");
                }
            }
        }
        take(&mut epochs, 8, 2).unwrap();
        take(&mut epochs, 8 + EPOCH_STEP_MAX, 1).unwrap();
        assert_eq!(Epochs::open(Some(file)).unwrap().newest(), 8 + EPOCH_STEP_MAX);
    }

    proptest::proptest! {
        /// Any epoch taken leaves room for the next.
        #[test]
        fn any_epoch_is_refused_or_leaves_room_for_the_next(
            came in proptest::collection::vec(proptest::prelude::any::<u64>(), 0..20),
            steps in proptest::collection::vec(0..=2 * EPOCH_STEP_MAX, 0..20),
        ) {
            let mut epochs = Epochs::open(None).unwrap();
            let mut least = 0;
            for epoch in came.into_iter().chain(steps.iter().scan(0_u64, |sum, step| {
                *sum += step;
                Some(*sum)
            })) {
                let known = epochs.newest();
                let is_taken = take(&mut epochs, epoch, 1).is_ok();
                let fits = epoch >= known && epoch - known <= EPOCH_STEP_MAX;
                proptest::prop_assert_eq!(is_taken, fits);
                least += 1;
                proptest::prop_assert!(epochs.newest() <= least * EPOCH_STEP_MAX);
            }
        }
    }

    #[test]
    fn a_damaged_file_is_reported_and_never_guessed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("epoch");
        let mut epochs = Epochs::open(Some(file.clone())).unwrap();
        take(&mut epochs, 12, 1).unwrap();
        let good = std::fs::read(&file).unwrap();
        for place in 0..good.len() {
            for flip in [1, 2, 4, 8, 16, 32, 64, 128] {
                let mut bytes = good.clone();
                bytes[place] ^= flip;
                assert_eq!(parse(&bytes), None, "byte {place} by {flip}");
            }
            assert_eq!(parse(&good[..place]), None, "{place} bytes");
        }
        std::fs::write(&file, "epoch 3").unwrap();
        let error = Epochs::open(Some(file)).unwrap_err().to_string();
        assert!(error.starts_with("epoch: ") && error.contains("is damaged"), "{error}");
    }

    #[test]
    fn an_epoch_that_cannot_be_written_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut epochs = Epochs::open(Some(folder.path().join("none/epoch"))).unwrap();
        let error = take(&mut epochs, 1, 1).unwrap_err().to_string();
        assert!(error.contains("cannot write"), "{error}");
        assert_eq!(epochs.held(None), None);
    }

    proptest! {
        #[test]
        fn any_file_of_an_epoch_is_read_as_it_was_written_or_not_at_all(
            bytes: Vec<u8>,
            epoch: u64,
            at in 0.0..1.0f64,
            bit in 0u8..8,
            cut: bool,
        ) {
            prop_assert_eq!(parse(&bytes), None);
            let taken = Taken { epoch, operator: key(7) };
            let line = taken.line();
            let mut text = format!("{line}\n{line}\n").into_bytes();
            prop_assert_eq!(parse(&text), Some(taken));
            let at = (at * text.len() as f64) as usize;
            match cut {
                true => text.truncate(at),
                false => text[at] ^= 1 << bit,
            }
            prop_assert_eq!(parse(&text), None);
        }
    }
}

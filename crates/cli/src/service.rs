//! Notifications to a service manager by systemd's protocol (`sd_notify`); without one, no effect.

use std::sync::Once;

use sd_notify::{NotifyState, notify, watchdog_enabled};

/// Notifies the service manager that the process is up and, from then on at a third of its watchdog
/// interval, that tasks run. Only the first call has an effect.
///
/// Must be called on a runtime.
pub(crate) fn tell_up() {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        tell(NotifyState::Ready);
        if let Some(timeout) = watchdog_enabled() {
            tokio::spawn(async move {
                let mut turns = tokio::time::interval(timeout / 3);
                loop {
                    turns.tick().await;
                    tell(NotifyState::Watchdog);
                }
            });
        }
    });
}

/// Notifies the service manager that the process is ending.
pub(crate) fn tell_ending() {
    tell(NotifyState::Stopping);
}

fn tell(state: NotifyState<'_>) {
    if let Err(error) = notify(&[state]) {
        tracing::debug!(%error, "the service manager does not hear");
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn every_unit_restarts_forever_and_waits_for_no_network() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd");
        let mut count = 0;
        for unit in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read_to_string(unit.unwrap().path()).unwrap();
            for line in ["StartLimitIntervalSec=0", "RestartSec=1", "Restart=always"] {
                assert!(text.lines().any(|it| it == line), "{line} is missing:\n{text}");
            }
            // That target is reached only once every link is up.
            assert!(!text.contains("network-online"), "{text}");
            count += 1;
        }
        assert_eq!(count, 5);
    }
}

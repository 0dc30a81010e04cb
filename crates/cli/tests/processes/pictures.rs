//! Pictures without new content, and stamps that no picture carried: over loopback sockets.
#![expect(clippy::unwrap_used, reason = "a failed test panics")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tautline_guard::{Cause, Mode};
use tautline_vehicle::OpenSensor;
use tautline_video::{Error, Layout, Picture, Sensor};
use tokio::time::sleep;

use crate::hostile::stand::{ANNA, Car, Operator, Stand, TURN, grey};
use crate::hostile::tried;

/// A camera whose driver returns old buffers again.
struct Stuck {
    taken: u64,
    shown: u64,
    /// Number of buffers that it returns in turn; 0 if each capture is new.
    buffers: Arc<AtomicU8>,
}

impl Sensor for Stuck {
    fn layout(&self) -> Layout {
        Layout::of(640, 96).unwrap()
    }

    fn pictures_per_second(&self) -> f64 {
        20.0
    }

    fn next_picture(&mut self) -> Result<bool, Error> {
        self.taken += 1;
        self.shown = match u64::from(self.buffers.load(Ordering::Relaxed)) {
            0 => self.taken,
            buffers => self.taken % buffers,
        };
        Ok(true)
    }

    fn read(&mut self, strip: usize, rows: &mut Picture) {
        let luma = rows.planes_mut().0;
        luma.fill(20 * (1 + strip as u8));
        luma[..8].copy_from_slice(&self.shown.to_le_bytes());
    }
}

#[test]
fn a_camera_that_repeats_buffers_stops_a_moving_machine() {
    tried(async || {
        let buffers = Arc::<AtomicU8>::default();
        let own = buffers.clone();
        let open: OpenSensor =
            Box::new(move || Ok(Box::new(Stuck { taken: 0, shown: 0, buffers: own.clone() })));
        let mut stand = Stand::start(Car::default(), open).await;
        let mut anna = Operator::start(ANNA);
        stand.introduce(&anna, [1; 16]).await;
        anna.respond([1; 16]);
        for count in [1, 3] {
            buffers.store(0, Ordering::Relaxed);
            anna.see(20).await;
            anna.arm().await;
            anna.drive(0.5, 0.0, || stand.car().state.speed > 2.0).await;
            anna.act = None;
            buffers.store(count, Ordering::Relaxed);
            // With the throttle pressed: this stand's guard has a limit of 2 s.
            anna.drive(0.5, 0.0, || stand.car().state.speed == 0.0).await;
            let guard = *anna.telemetry().status().unwrap();
            assert_eq!(guard.why.cause, Cause::PictureAge, "{count} buffers in turn: {guard:?}");
        }
        let snapshot = stand.latest.snapshot();
        for name in ["camera: capture repeated", "command: tick of a repeated picture"] {
            let count = snapshot.drops().find(|(told, _)| *told == name).map(|(_, count)| count);
            assert!(count > Some(10), "{name}: {count:?}");
        }
    });
}

/// Like an operator whose page shows nothing, but who reads the guard's status.
#[test]
fn a_tick_that_no_picture_carried_arms_nothing() {
    tried(async || {
        let mut stand = Stand::start(Car::default(), grey()).await;
        let mut anna = Operator::start(ANNA);
        stand.introduce(&anna, [1; 16]).await;
        anna.respond([1; 16]);
        anna.cites_told = true;
        anna.see(20).await;
        for _ in 0..100 {
            anna.ask_to_arm();
            anna.command(0.0, 0.0);
            sleep(TURN).await;
        }
        let guard = *anna.telemetry().status().unwrap();
        assert_eq!((guard.mode, guard.loop_age), (Mode::Held, None), "{guard:?}");
        let count = |stand: &Stand| {
            let snapshot = stand.latest.snapshot();
            let name = "command: tick on no picture that was sent";
            snapshot.drops().find(|(told, _)| *told == name).map_or(0, |(_, count)| count)
        };
        sleep(Duration::from_millis(100)).await;
        assert!(count(&stand) > 50, "{}", count(&stand));
        anna.cites_told = false;
        anna.arm().await;
    });
}

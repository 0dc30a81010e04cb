use core::time::Duration;

/// Interval of the guard's steps and of the frames between vehicle, guard and machine.
pub const PERIOD: Duration = Duration::from_millis(10);

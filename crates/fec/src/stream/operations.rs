//! Counts of multiplications, for tests: what a call costs, whatever the machine is busy with.

#[cfg(test)]
use core::cell::Cell;

/// Notes so many multiplications of bytes, or as much work. Nothing outside tests.
#[inline]
pub(super) fn count(_bytes: usize) {
    #[cfg(test)]
    COUNT.with(|count| count.set(count.get() + _bytes));
}

/// Returns what was counted on this thread since the last call.
#[cfg(test)]
pub(super) fn take() -> usize {
    COUNT.take()
}

#[cfg(test)]
std::thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

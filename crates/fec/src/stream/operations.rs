//! Counts of multiplications, for tests: the cost of a call, independent of the machine's load.

#[cfg(test)]
use core::cell::Cell;

/// Counts `_bytes` multiplications of bytes, or equivalent work. Does nothing outside tests.
#[inline]
pub(super) fn count(_bytes: usize) {
    #[cfg(test)]
    COUNT.with(|count| count.set(count.get() + _bytes));
}

/// Returns the count on this thread since the last call, and resets it to zero.
#[cfg(test)]
pub(super) fn take() -> usize {
    COUNT.take()
}

#[cfg(test)]
std::thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

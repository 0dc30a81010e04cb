//! Memory and CPU time of codecs: a wrapper of the system allocator that records the largest
//! request.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

struct Watched;

#[global_allocator]
static ALLOCATOR: Watched = Watched;
static LARGEST: AtomicUsize = AtomicUsize::new(0);

/// Records a request of over [`NOTED`] bytes; smaller ones are ignored, so that timings stay those
/// of the system.
fn note(size: usize) {
    if size > NOTED {
        LARGEST.fetch_max(size, Ordering::Relaxed);
    }
}

#[expect(unsafe_code, reason = "an allocator is")]
// SAFETY: every call is forwarded unchanged to the system allocator.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(place, layout, size) }
    }
}

/// Interposed allocation functions, which record the requests of C and C++.
#[cfg(all(foreign, target_env = "gnu"))]
#[expect(unsafe_code, reason = "an allocator is")]
mod of_c {
    use std::ffi::c_void;

    unsafe extern "C" {
        fn __libc_malloc(size: usize) -> *mut c_void;
        fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
        fn __libc_realloc(place: *mut c_void, size: usize) -> *mut c_void;
    }

    // SAFETY of all three: the system's own functions, by their internal names.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
        super::note(size);
        // SAFETY: the caller's promise.
        unsafe { __libc_malloc(size) }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
        super::note(count.saturating_mul(size));
        // SAFETY: the caller's promise.
        unsafe { __libc_calloc(count, size) }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn realloc(place: *mut c_void, size: usize) -> *mut c_void {
        super::note(size);
        // SAFETY: the caller's promise.
        unsafe { __libc_realloc(place, size) }
    }
}

/// Returns the bytes of the largest request since [`forget_largest`], or 0 if none was over
/// [`NOTED`].
pub(crate) fn largest() -> usize {
    LARGEST.load(Ordering::Relaxed)
}

pub(crate) fn forget_largest() {
    LARGEST.store(0, Ordering::Relaxed);
}

/// Limits this process's memory in bytes, so that an excessive codec ends this process and not the
/// machine.
#[expect(unsafe_code, reason = "a call of the system")]
pub(crate) fn limit(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: the struct lives through the call.
    unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) };
}

/// Returns the CPU time of this thread.
#[expect(unsafe_code, reason = "a call of the system")]
pub(crate) fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the struct lives through the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

const NOTED: usize = 8 << 20;

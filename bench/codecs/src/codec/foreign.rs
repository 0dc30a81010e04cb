//! Codecs in C and C++, through the common interface of `foreign/harness.hpp`.

#![expect(unsafe_code, reason = "other languages are called")]

use std::ffi::c_void;

use super::{Read, Staged, refused};
use crate::normal::{Cloud, Info, Point};

/// Function table of a codec that operates on its own state.
#[repr(C)]
pub(crate) struct Calls {
    make: unsafe extern "C" fn() -> *mut c_void,
    end: unsafe extern "C" fn(*mut c_void),
    fill: unsafe extern "C" fn(*mut c_void, *const Info, *const Point, usize),
    write: unsafe extern "C" fn(*mut c_void, *mut usize) -> *const u8,
    parse: unsafe extern "C" fn(*mut c_void, *const u8, usize) -> i32,
    count: unsafe extern "C" fn(*const c_void) -> usize,
    normal: unsafe extern "C" fn(*const c_void, *mut Info, *mut Point),
    sum: unsafe extern "C" fn(*const c_void) -> f64,
    guid: unsafe extern "C" fn(*const c_void) -> u64,
    middle_y: unsafe extern "C" fn(*const c_void) -> f32,
}

unsafe extern "C" {
    #[cfg(colfer)]
    pub(crate) safe fn colfer_calls() -> &'static Calls;
    #[cfg(lcm)]
    pub(crate) safe fn lcm_calls() -> &'static Calls;
    #[cfg(fastcdr)]
    pub(crate) safe fn fastcdr_calls() -> &'static Calls;
    #[cfg(cyclone)]
    pub(crate) safe fn cyclone_calls() -> &'static Calls;
    #[cfg(protobuf)]
    pub(crate) safe fn protobuf_calls() -> &'static Calls;
}

/// A codec in C or C++.
pub(crate) struct Foreign {
    calls: &'static Calls,
    state: *mut c_void,
}

impl Foreign {
    pub(crate) fn new(calls: &'static Calls) -> Self {
        // SAFETY: `make` has no preconditions; `end` is called once, in `drop`.
        let state = unsafe { (calls.make)() };
        Self { calls, state }
    }
}

// SAFETY of every call below: `state` is the result of `make` and has no other owner; pointers and
// lengths are those of live slices. Hostile bytes are read in a separate process, because the code
// behind these calls is under test.
impl Staged for Foreign {
    fn fill(&mut self, cloud: &Cloud) {
        let points = &cloud.points;
        // SAFETY: above.
        unsafe { (self.calls.fill)(self.state, &cloud.info, points.as_ptr(), points.len()) };
    }

    fn write(&mut self) -> &[u8] {
        let mut length = 0;
        // SAFETY: above; the buffer belongs to the state, which is borrowed as long as the slice.
        unsafe {
            let bytes = (self.calls.write)(self.state, &mut length);
            std::slice::from_raw_parts(bytes, length)
        }
    }

    fn parse(&mut self, bytes: &[u8]) -> Read<()> {
        // SAFETY: above.
        match unsafe { (self.calls.parse)(self.state, bytes.as_ptr(), bytes.len()) } {
            0 => Ok(()),
            1 => Err(refused("refused")),
            _ => panic!("an exception that is not the codec's own"),
        }
    }

    fn normal(&self) -> Read<Cloud> {
        let mut info = Info::default();
        // SAFETY: above; `normal` writes as many points as `count` returns.
        unsafe {
            let count = (self.calls.count)(self.state);
            let mut points = Vec::with_capacity(count);
            (self.calls.normal)(self.state, &mut info, points.as_mut_ptr());
            points.set_len(count);
            Ok(Cloud { info, points })
        }
    }

    fn own_sum(&self) -> f64 {
        // SAFETY: above.
        unsafe { (self.calls.sum)(self.state) }
    }

    fn own_guid(&self) -> u64 {
        // SAFETY: above.
        unsafe { (self.calls.guid)(self.state) }
    }

    fn own_middle_y(&self) -> f32 {
        // SAFETY: above.
        unsafe { (self.calls.middle_y)(self.state) }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // SAFETY: created in `new`, freed only here.
        unsafe { (self.calls.end)(self.state) };
    }
}

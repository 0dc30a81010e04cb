//! The only module that calls libx264, through the shim next to it: it contains all the unsafe
//! code.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int};
use std::ptr::{self, NonNull};

use tautline_video::budgeted::{Coded, Library};
use tautline_video::{Error, Picture};

/// State of one encoder, owned by the shim.
#[repr(C)]
struct Shim {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn tautline_x264_open(
        preset: *const c_char,
        width: c_int,
        height: c_int,
        rate: c_int,
        refresh_period: c_int,
        cabac: c_int,
    ) -> *mut Shim;
    fn tautline_x264_encode(
        shim: *mut Shim,
        luma: *const u8,
        cb: *const u8,
        cr: *const u8,
        qp: c_int,
        idr: c_int,
        bytes: *mut *const u8,
        is_idr: *mut c_int,
    ) -> c_int;
    fn tautline_x264_close(shim: *mut Shim);
}

/// An x264 encoder whose quantizer is set for each picture.
pub(super) struct Native {
    shim: NonNull<Shim>,
    width: usize,
    height: usize,
}

// SAFETY: With one thread the library's encoder has no thread of its own and no thread-local
// state; the pointer is owned by this value alone, which is not Sync and not Clone.
unsafe impl Send for Native {}

impl Native {
    pub(super) fn new(
        width: usize,
        height: usize,
        rate: u32,
        preset: &CStr,
        refresh_period: u8,
        cabac: bool,
    ) -> Result<Self, Error> {
        // SAFETY: The preset is a C string that outlives the call; the rest are numbers.
        let shim = unsafe {
            tautline_x264_open(
                preset.as_ptr(),
                width as c_int,
                height as c_int,
                rate as c_int,
                c_int::from(refresh_period),
                c_int::from(cabac),
            )
        };
        let shim =
            NonNull::new(shim).ok_or(Error::Encoder { call: "x264_encoder_open", code: 0 })?;
        Ok(Self { shim, width, height })
    }
}

impl Library for Native {
    fn encode(&mut self, picture: &Picture, qp: i32, idr: bool) -> Result<Coded, Error> {
        assert_eq!((picture.width(), picture.height()), (self.width, self.height));
        let (mut bytes, mut is_idr) = (ptr::null(), 0);
        // SAFETY: `shim` is live; the planes have the sizes it was opened with (Picture's
        // invariant, and the sizes are equal), are only read, and outlive the call, as do the two
        // locations written to.
        let length = unsafe {
            tautline_x264_encode(
                self.shim.as_ptr(),
                picture.luma().as_ptr(),
                picture.cb().as_ptr(),
                picture.cr().as_ptr(),
                qp,
                c_int::from(idr),
                &raw mut bytes,
                &raw mut is_idr,
            )
        };
        let failed = Error::Encoder { call: "x264_encoder_encode", code: length };
        let length = usize::try_from(length).map_err(|_| failed)?;
        // SAFETY: On success the encoder's NAL units are contiguous at `bytes`, `length` bytes in
        // total, unchanged until its next call.
        let bytes = unsafe { std::slice::from_raw_parts(bytes, length) }.to_vec();
        Ok(Coded { is_idr: is_idr != 0, bytes })
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        // SAFETY: `shim` came from tautline_x264_open and is not used again.
        unsafe { tautline_x264_close(self.shim.as_ptr()) };
    }
}

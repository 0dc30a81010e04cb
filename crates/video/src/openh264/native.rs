//! Calls of openh264's encoder: this module contains all the unsafe code for it.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::ptr;

use openh264_sys2::{
    API, CAMERA_VIDEO_REAL_TIME, CONSTANT_ID, DEBLOCKING_IDC_0, DynamicAPI,
    ENCODER_OPTION_SVC_ENCODE_PARAM_EXT, ENCODER_OPTION_TRACE_LEVEL, ISVCEncoder, ISVCEncoderVtbl,
    LEVEL_3_1, LEVEL_3_2, LOW_COMPLEXITY, PRO_BASELINE, RC_BITRATE_MODE, RC_OFF_MODE, SEncParamExt,
    SFrameBSInfo, SM_FIXEDSLCNUM_SLICE, SM_SINGLE_SLICE, SSourcePicture, WELS_LOG_QUIET,
    videoFormatI420, videoFrameTypeIDR, videoFrameTypeP,
};

use crate::budgeted::{Coded, Library};
use crate::{Error, Picture, Quantizers};

/// Control of the size of openh264's pictures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Control {
    /// A quantizer per picture, set by the caller.
    Quantizer,
    /// The library's own rate control.
    Own {
        /// Target bitrate in bit/s.
        bits_per_second: c_int,
        /// Number of slices per picture.
        slices: u32,
    },
}

/// An initialized openh264 encoder.
///
/// With [`Control::Quantizer`], openh264's own rate control is off: `iDLayerQp` is then the
/// quantizer of every macroblock (`WelsRcPictureInitDisable`). `SetOption(SVC_ENCODE_PARAM_EXT)`
/// with only that field changed takes the branch of `WelsEncoderParamAdjust` that neither resets
/// nor allocates.
pub(super) struct Native {
    api: DynamicAPI,
    encoder: *mut ISVCEncoder,
    params: Box<SEncParamExt>,
    info: Box<SFrameBSInfo>,
    control: Control,
    width: usize,
    height: usize,
}

// SAFETY: The library's encoder keeps no thread-local state and, with one thread, starts no
// threads; the pointer is owned by this value alone, which is not Sync and not Clone.
unsafe impl Send for Native {}

impl Native {
    pub(super) fn new(
        width: usize,
        height: usize,
        rate: f32,
        control: Control,
    ) -> Result<Self, Error> {
        let api = DynamicAPI::from_source();
        let mut encoder: *mut ISVCEncoder = ptr::null_mut();
        // SAFETY: The call writes one pointer to the given location, which outlives it.
        let code = unsafe { api.WelsCreateSVCEncoder(&raw mut encoder) };
        check("WelsCreateSVCEncoder", code)?;
        if encoder.is_null() {
            return Err(Error::Encoder { call: "WelsCreateSVCEncoder", code: 0 });
        }
        // From here on dropping `native` destroys the encoder.
        let (params, info) = (Box::default(), Box::default());
        let mut native = Self { api, encoder, params, info, control, width, height };
        native.initialize(rate)?;
        Ok(native)
    }

    fn initialize(&mut self, rate: f32) -> Result<(), Error> {
        let defaults = function("GetDefaultParams", self.vtable().GetDefaultParams)?;
        let initialize = function("InitializeExt", self.vtable().InitializeExt)?;
        let set_option = function("SetOption", self.vtable().SetOption)?;
        let mut quiet: c_int = WELS_LOG_QUIET;
        // SAFETY: `encoder` is live; the option reads one c_int, which outlives the call.
        let code = unsafe {
            set_option(self.encoder, ENCODER_OPTION_TRACE_LEVEL, (&raw mut quiet).cast())
        };
        check("SetOption", code)?;
        // SAFETY: `encoder` is live and `params` is a valid location for the struct that it fills.
        let code = unsafe { defaults(self.encoder, &raw mut *self.params) };
        check("GetDefaultParams", code)?;
        configure(&mut self.params, self.width as c_int, self.height as c_int, rate);
        if let Control::Own { bits_per_second, slices } = self.control {
            hold_rate(&mut self.params, bits_per_second, slices);
        }
        // SAFETY: `encoder` is live; `params` is filled and only read.
        let code = unsafe { initialize(self.encoder, &raw const *self.params) };
        check("InitializeExt", code)
    }

    /// Sets the quantizer of the following pictures, within 0 to 51; does nothing if the library's
    /// own rate control sets it.
    fn set_qp(&mut self, qp: i32) -> Result<(), Error> {
        let qp = qp.clamp(0, i32::from(Quantizers::MAX));
        if self.control != Control::Quantizer || self.params.sSpatialLayers[0].iDLayerQp == qp {
            return Ok(());
        }
        self.params.sSpatialLayers[0].iDLayerQp = qp;
        let set_option = function("SetOption", self.vtable().SetOption)?;
        // SAFETY: `encoder` is initialized; the option copies one SEncParamExt, which outlives it.
        let code = unsafe {
            let params = (&raw mut *self.params).cast();
            set_option(self.encoder, ENCODER_OPTION_SVC_ENCODE_PARAM_EXT, params)
        };
        check("SetOption", code)
    }

    /// Makes the next picture an IDR.
    fn force_idr(&mut self) -> Result<(), Error> {
        let force = function("ForceIntraFrame", self.vtable().ForceIntraFrame)?;
        // SAFETY: `encoder` is initialized.
        let code = unsafe { force(self.encoder, true) };
        check("ForceIntraFrame", code)
    }

    /// Copies the NAL units of the last picture out of the encoder's buffers.
    fn coded_bytes(&self) -> Vec<u8> {
        let mut bytes =
            Vec::with_capacity(usize::try_from(self.info.iFrameSizeInBytes).unwrap_or(0));
        let layers = usize::try_from(self.info.iLayerNum).unwrap_or(0);
        for layer in self.info.sLayerInfo.iter().take(layers) {
            let units = usize::try_from(layer.iNalCount).unwrap_or(0);
            if units == 0 || layer.pBsBuf.is_null() || layer.pNalLengthInByte.is_null() {
                continue;
            }
            // SAFETY: After EncodeFrame a layer has `iNalCount` lengths at `pNalLengthInByte`, in
            // memory that the encoder owns and does not change until its next call.
            let lengths = unsafe { std::slice::from_raw_parts(layer.pNalLengthInByte, units) };
            let total = lengths.iter().map(|&length| usize::try_from(length).unwrap_or(0)).sum();
            // SAFETY: The layer's NAL units are contiguous from `pBsBuf` on, with the sum of their
            // lengths, likewise until the encoder's next call.
            bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(layer.pBsBuf, total) });
        }
        bytes
    }

    fn vtable(&self) -> &ISVCEncoderVtbl {
        // SAFETY: A live encoder begins with the pointer to its table of functions, which is
        // static.
        unsafe { &**self.encoder }
    }
}

impl Library for Native {
    fn encode(&mut self, picture: &Picture, qp: i32, idr: bool) -> Result<Coded, Error> {
        assert_eq!((picture.width(), picture.height()), (self.width, self.height));
        if idr {
            self.force_idr()?;
        }
        self.set_qp(qp)?;
        let encode = function("EncodeFrame", self.vtable().EncodeFrame)?;
        let stride = self.width as c_int;
        let source = SSourcePicture {
            iColorFormat: videoFormatI420,
            iStride: [stride, stride / 2, stride / 2, 0],
            pData: [
                picture.luma().as_ptr().cast_mut(),
                picture.cb().as_ptr().cast_mut(),
                picture.cr().as_ptr().cast_mut(),
                ptr::null_mut(),
            ],
            iPicWidth: stride,
            iPicHeight: self.height as c_int,
            uiTimeStamp: 0,
            bPsnrY: false,
            bPsnrU: false,
            bPsnrV: false,
        };
        // SAFETY: `encoder` is initialized; the planes have the given strides and rows (Picture's
        // invariant, and the sizes are equal), are only read, and outlive the call.
        let code = unsafe { encode(self.encoder, &raw const source, &raw mut *self.info) };
        check("EncodeFrame", code)?;
        let is_idr = match self.info.eFrameType {
            kind if kind == videoFrameTypeIDR => true,
            kind if kind == videoFrameTypeP => false,
            kind => return Err(Error::Encoder { call: "EncodeFrame: frame type", code: kind }),
        };
        Ok(Coded { is_idr, bytes: self.coded_bytes() })
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        if let Some(uninitialize) = self.vtable().Uninitialize {
            // SAFETY: `encoder` is live; the call is allowed at any time before the destruction.
            let _ = unsafe { uninitialize(self.encoder) };
        }
        // SAFETY: `encoder` came from WelsCreateSVCEncoder of the same library and is not used
        // again.
        unsafe { self.api.WelsDestroySVCEncoder(self.encoder) };
    }
}

/// Sets the parameters of the low-delay stream on which the concealer and browsers rely.
fn configure(params: &mut SEncParamExt, width: c_int, height: c_int, rate: f32) {
    params.iUsageType = CAMERA_VIDEO_REAL_TIME;
    params.iPicWidth = width;
    params.iPicHeight = height;
    params.fMaxFrameRate = rate;
    params.iTemporalLayerNum = 1;
    params.iSpatialLayerNum = 1;
    params.iRCMode = RC_OFF_MODE;
    params.iComplexityMode = LOW_COMPLEXITY;
    // IDRs only on request.
    params.uiIntraPeriod = 0;
    params.bEnableSceneChangeDetect = false;
    params.iNumRefFrame = 1;
    params.bEnableLongTermReference = false;
    params.eSpsPpsIdStrategy = CONSTANT_ID;
    params.iEntropyCodingModeFlag = 0;
    // The receiver could not distinguish a skipped picture from a lost one.
    params.bEnableFrameSkip = false;
    params.iMultipleThreadIdc = 1;
    params.iLoopFilterDisableIdc = DEBLOCKING_IDC_0;
    params.bEnableDenoise = false;
    params.bEnableBackgroundDetection = false;
    params.bEnableAdaptiveQuant = false;
    params.bEnableFrameCroppingFlag = true;
    let layer = &mut params.sSpatialLayers[0];
    layer.iVideoWidth = width;
    layer.iVideoHeight = height;
    layer.fFrameRate = rate;
    layer.uiProfileIdc = PRO_BASELINE;
    layer.uiLevelIdc = LEVEL_3_1;
    layer.sSliceArgument.uiSliceMode = SM_SINGLE_SLICE;
    layer.sSliceArgument.uiSliceNum = 1;
    // Used only for the level check: Tautline sets the quantizer.
    params.iTargetBitrate = NOMINAL_BITS_PER_SECOND;
    params.iMaxBitrate = NOMINAL_BITS_PER_SECOND;
    layer.iSpatialBitrate = NOMINAL_BITS_PER_SECOND;
    layer.iMaxSpatialBitrate = NOMINAL_BITS_PER_SECOND;
}

/// Sets the parameters of the library's own rate control for a bitrate, in pictures of several
/// slices.
fn hold_rate(params: &mut SEncParamExt, bits_per_second: c_int, slices: u32) {
    params.iRCMode = RC_BITRATE_MODE;
    params.iTargetBitrate = bits_per_second;
    params.iMaxBitrate = 0;
    let layer = &mut params.sSpatialLayers[0];
    layer.uiLevelIdc = LEVEL_3_2;
    layer.iSpatialBitrate = bits_per_second;
    layer.iMaxSpatialBitrate = 0;
    layer.sSliceArgument.uiSliceMode = SM_FIXEDSLCNUM_SLICE;
    layer.sSliceArgument.uiSliceNum = slices;
}

/// Bitrate that openh264 checks against the level: below the 14 Mbit/s of level 3.1 (table A-1),
/// which allows 1280x128 at 60 pictures/s.
const NOMINAL_BITS_PER_SECOND: c_int = 4_000_000;

fn function<F>(call: &'static str, function: Option<F>) -> Result<F, Error> {
    function.ok_or(Error::Encoder { call, code: 0 })
}

fn check(call: &'static str, code: c_int) -> Result<(), Error> {
    if code == 0 { Ok(()) } else { Err(Error::Encoder { call, code }) }
}

//! Kernel interface: the part of `linux/videodev2.h` that one camera needs.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::ptr::NonNull;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Setter, Updater, ioctl, opcode};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::code::Code;
use super::device::{Device, Set, Taken};
use super::fraction::Fraction;
use super::mode::Mode;

/// Camera of this machine, as the kernel's V4L2 device.
#[derive(Debug)]
pub struct Kernel {
    file: OwnedFd,
    name: String,
    buffers: Vec<Mapping>,
}

impl Kernel {
    /// Opens the device at `path` without blocking.
    ///
    /// # Errors
    /// Returns any error of the system; [`io::ErrorKind::Unsupported`], with a description of the
    /// actual device, if it does not capture pictures or cannot stream.
    pub fn open(path: &Path) -> io::Result<Self> {
        let refused = |words: &str| io::Error::new(io::ErrorKind::Unsupported, words);
        check_device(path)?;
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = File::options().read(true).write(true).custom_flags(flags).open(path)?;
        let file = OwnedFd::from(file);
        let mut told = Capability::default();
        call::<QUERY_CAPABILITY, _>(&file, &mut told).map_err(|error| {
            match error.raw_os_error() {
                Some(code) if code == Errno::NOTTY.raw_os_error() => {
                    refused("it is no V4L2 device")
                }
                _ => error,
            }
        })?;
        let of_all = told.capabilities;
        let can = if of_all & CAN_TELL_DEVICE == 0 { of_all } else { told.device_capabilities };
        if can & (CAN_CAPTURE | CAN_STREAM) != CAN_CAPTURE | CAN_STREAM {
            return Err(refused(match can {
                _ if can & CAN_CAPTURE != 0 => "it cannot stream",
                _ if can & CAN_CAPTURE_PLANES != 0 => {
                    "it gives pictures in several planes alone, which are not read here: an ISP or libcamera before it \
                     may give others"
                }
                _ if can & CAN_TELL_METADATA != 0 => {
                    "it is what a camera tells of its pictures: they are at another device, often the one before"
                }
                _ => "it captures no pictures",
            }));
        }
        let card = told.card.split(|byte| *byte == 0).next().unwrap_or_default();
        let name = String::from_utf8_lossy(card).into_owned();
        Ok(Self { file, name, buffers: Vec::new() })
    }

    /// Returns the capture sizes for this pixel format, in pixels. For a continuous range these are
    /// the usual sizes in it; if there is none, the largest size up to the usual maximum.
    fn sizes(&self, code: Code) -> Vec<[u32; 2]> {
        let mut sizes = Vec::new();
        for index in 0..COUNT_MAX {
            let mut told = FrameSize { index, code: code.four(), ..FrameSize::default() };
            if call::<LIST_SIZES, _>(&self.file, &mut told).is_err() {
                break;
            }
            let [a, b, c, d, e, f] = told.sides;
            if told.kind == DISCRETE {
                sizes.push([a, b]);
                continue;
            }
            let fits = |side: u32, [least, most, step]: [u32; 3]| {
                (least..=most).contains(&side) && (side - least).is_multiple_of(step.max(1))
            };
            let usual = USUAL_SIZES.into_iter();
            sizes.extend(usual.filter(|size| fits(size[0], [a, b, c]) && fits(size[1], [d, e, f])));
            if sizes.is_empty() {
                sizes.push([largest(SIZE_MAX[0], [a, b, c]), largest(SIZE_MAX[1], [d, e, f])]);
            }
            break;
        }
        sizes
    }

    /// Returns the mode that is set at present, of unknown interval; `None` if the driver does not
    /// tell it. A driver that lists no sizes has only that.
    fn present_mode(&self) -> Option<Mode> {
        let mut told = PixelFormat::default();
        call::<GET_FORMAT, _>(&self.file, &mut told).ok()?;
        let PictureFormat { width, height, code, .. } = told.picture;
        Some(Mode { code: Code::of(code), size: [width, height], interval: None })
    }

    /// Returns the possible intervals between two pictures at this size in seconds, only the
    /// shortest of a range; empty if unknown.
    fn intervals(&self, code: Code, [width, height]: [u32; 2]) -> Vec<Fraction> {
        let mut intervals = Vec::new();
        for index in 0..COUNT_MAX {
            let code = code.four();
            let mut told = FrameInterval { index, code, width, height, ..FrameInterval::default() };
            if call::<LIST_INTERVALS, _>(&self.file, &mut told).is_err() {
                break;
            }
            // Of a range of intervals, the driver reports the shortest first.
            intervals.push(Fraction::new(told.fractions[0], told.fractions[1]));
            if told.kind != DISCRETE {
                break;
            }
        }
        intervals.into_iter().flatten().collect()
    }

    fn hand_over(&self, index: u32) -> io::Result<()> {
        let mut buffer = Buffer { index, ..Buffer::default() };
        call::<QUEUE, _>(&self.file, &mut buffer)
    }

    /// Waits for a filled buffer; `None` if there is none within `timeout`.
    ///
    /// # Errors
    /// Any error of the system; [`io::ErrorKind::WouldBlock`] if the device signalled a buffer but
    /// delivered none.
    fn filled(&self, timeout: Duration) -> io::Result<Option<Buffer>> {
        let limit =
            Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        let mut ready = [PollFd::from_borrowed_fd(self.file.as_fd(), PollFlags::IN)];
        if poll(&mut ready, Some(&limit))? == 0 {
            return Ok(None);
        }
        let mut buffer = Buffer::default();
        call::<TAKE_BACK, _>(&self.file, &mut buffer).map(|()| Some(buffer))
    }
}

/// Checks that `path` names a device, without opening it.
///
/// # Errors
/// Any error of the system; [`io::ErrorKind::Unsupported`], with a description of what it is
/// instead.
pub fn check_device(path: &Path) -> io::Result<()> {
    let kind = std::fs::metadata(path)?.file_type();
    let what = match kind {
        _ if kind.is_char_device() => return Ok(()),
        _ if kind.is_dir() => "a folder",
        _ if kind.is_fifo() => "a pipe",
        _ if kind.is_socket() => "a socket",
        _ if kind.is_block_device() => "a disk",
        _ => "a file",
    };
    let words = format!("it is {what}, where a V4L2 device is needed");
    Err(io::Error::new(io::ErrorKind::Unsupported, words))
}

impl Device for Kernel {
    fn name(&self) -> &str {
        &self.name
    }

    fn modes(&mut self) -> io::Result<Vec<Mode>> {
        let mut modes = Vec::new();
        for index in 0..COUNT_MAX {
            let mut told = FormatName { index, ..FormatName::default() };
            if let Err(error) = call::<LIST_FORMATS, _>(&self.file, &mut told) {
                // The driver reports the end of the list by this error.
                if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) {
                    break;
                }
                return Err(error);
            }
            let code = Code::of(told.code);
            for size in self.sizes(code) {
                let intervals = self.intervals(code, size);
                let all = intervals.iter().copied().map(Some);
                let unknown = intervals.is_empty().then_some(None);
                modes.extend(all.chain(unknown).map(|interval| Mode { code, size, interval }));
            }
        }
        if modes.is_empty() {
            modes.extend(self.present_mode());
        }
        Ok(modes)
    }

    fn set(&mut self, mode: &Mode) -> io::Result<Set> {
        let [width, height] = mode.size;
        let code = mode.code.four();
        let picture =
            PictureFormat { width, height, code, field: PROGRESSIVE, ..Default::default() };
        let mut format = PixelFormat { picture, ..PixelFormat::default() };
        call::<SET_FORMAT, _>(&self.file, &mut format)?;
        let picture = format.picture;
        let code = Code::of(picture.code);
        let mut interval = mode.interval;
        let mut stream = StreamSettings::default();
        if let Some(wanted) = mode.interval {
            (stream.numerator, stream.denominator) = (wanted.over(), wanted.under());
        }
        // Many drivers have only one rate and do not support this call.
        if call::<SET_RATE, _>(&self.file, &mut stream).is_ok() {
            interval = Fraction::new(stream.numerator, stream.denominator).or(interval);
        }
        Ok(Set {
            mode: Mode { code, size: [picture.width, picture.height], interval },
            stride: picture.row_bytes as usize,
            // Grey cameras deliver the sensor's range, and few of their drivers report it.
            is_full_range: picture.quantization == FULL_RANGE
                || code == Code::Mjpeg
                || code == Code::Grey && picture.quantization != LIMITED_RANGE,
        })
    }

    fn start(&mut self) -> io::Result<()> {
        let mut wanted = BufferRequest { count: BUFFERS, ..BufferRequest::default() };
        call::<REQUEST_BUFFERS, _>(&self.file, &mut wanted)?;
        for index in 0..wanted.count {
            let mut buffer = Buffer { index, ..Buffer::default() };
            call::<QUERY_BUFFER, _>(&self.file, &mut buffer)?;
            self.buffers.push(Mapping::new(&self.file, buffer.offset, buffer.length)?);
            self.hand_over(index)?;
        }
        // SAFETY: VIDIOC_STREAMON reads the type of the stream, an int.
        unsafe { Ok(ioctl(&self.file, Setter::<STREAM_ON, u32>::new(CAPTURE))?) }
    }

    fn take(&mut self, timeout: Duration, bytes: &mut Vec<u8>) -> io::Result<Taken> {
        let Some(mut newest) = self.filled(timeout)? else {
            return Err(io::ErrorKind::TimedOut.into());
        };
        let mut left_out = 0;
        loop {
            match self.filled(Duration::ZERO) {
                Ok(Some(newer)) => {
                    self.hand_over(newest.index)?;
                    (newest, left_out) = (newer, left_out + 1);
                }
                Ok(None) => break,
                // The picture at hand is complete: the next call reports the error.
                Err(_) => break,
            }
        }
        let mapping = self.buffers.get(newest.index as usize);
        let mapping = mapping.ok_or(io::ErrorKind::InvalidData)?;
        bytes.clear();
        // SAFETY: The buffer belongs to this process until it is queued again: the driver does not
        // write to it.
        bytes.extend_from_slice(unsafe { mapping.bytes(newest.bytes_used as usize) });
        self.hand_over(newest.index)?;
        let [seconds, micros] = newest.time.map(i64::unsigned_abs);
        let is_monotonic = newest.flags & CLOCK_MASK == CLOCK_MONOTONIC;
        let at = Duration::from_secs(seconds).saturating_add(Duration::from_micros(micros));
        Ok(Taken {
            at: is_monotonic.then_some(at),
            is_of_start: newest.flags & SOURCE_MASK == SOURCE_START,
            is_damaged: newest.flags & DAMAGED != 0,
            left_out,
            sequence: newest.sequence,
        })
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // SAFETY: VIDIOC_STREAMOFF reads the type of the stream, an int. It dequeues all buffers.
        let _ = unsafe { ioctl(&self.file, Setter::<STREAM_OFF, u32>::new(CAPTURE)) };
    }
}

/// Buffer of the driver, mapped into this process until it is dropped.
#[derive(Debug)]
struct Mapping {
    begin: NonNull<c_void>,
    length: usize,
}

// SAFETY: The mapping belongs to this value alone, on any thread.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(file: &OwnedFd, offset: u32, length: u32) -> io::Result<Self> {
        let length = length as usize;
        // SAFETY: A new mapping at an address that the kernel chooses overlaps no other memory.
        let begin = unsafe {
            let place = std::ptr::null_mut();
            mmap(place, length, ProtFlags::READ, MapFlags::SHARED, file, offset.into())?
        };
        let begin = NonNull::new(begin).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { begin, length })
    }

    /// Returns the first `count` bytes of the buffer, or all if it has fewer.
    ///
    /// # Safety
    /// The driver must not write to the buffer while the bytes are in use.
    unsafe fn bytes(&self, count: usize) -> &[u8] {
        // SAFETY: At least this many bytes are mapped for as long as this value lives, and the
        // caller guarantees that the driver does not write to them.
        unsafe { std::slice::from_raw_parts(self.begin.as_ptr().cast(), count.min(self.length)) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: It was mapped with this address and length, and is no longer in use.
        let _ = unsafe { munmap(self.begin.as_ptr(), self.length) };
    }
}

/// Returns the largest side up to `bound` in a range of minimum, maximum and step; the minimum if
/// all exceed it.
fn largest(bound: u32, [least, most, step]: [u32; 3]) -> u32 {
    let over = most.min(bound).saturating_sub(least);
    least + over - over % step.max(1)
}

/// Calls the ioctl `CALL`, which reads and writes `value`.
fn call<const CALL: Opcode, T: Told>(file: &OwnedFd, value: &mut T) -> io::Result<()> {
    const { assert!(CALL == T::CALLS[0] || CALL == T::CALLS[1] || CALL == T::CALLS[2]) };
    // SAFETY: The struct is that of the call, which the assertion above checks: plain numbers, of
    // which any value is valid.
    unsafe { Ok(ioctl(file, Updater::<CALL, T>::new(value))?) }
}

/// Kernel struct of plain numbers, with the up to three ioctls that take it; the last is repeated.
trait Told {
    const CALLS: [Opcode; 3];
}

/// Assigns calls to kernel structs, and checks their sizes.
macro_rules! told {
    ($($name:ident $bytes:literal [$($call:ident),+]),+ $(,)?) => {
        $(impl Told for $name {
            const CALLS: [Opcode; 3] = {
                assert!(size_of::<Self>() == $bytes);
                [$($call),+]
            };
        })+
    };
}

told!(
    Capability 104 [QUERY_CAPABILITY, QUERY_CAPABILITY, QUERY_CAPABILITY],
    FormatName 64 [LIST_FORMATS, LIST_FORMATS, LIST_FORMATS],
    FrameSize 44 [LIST_SIZES, LIST_SIZES, LIST_SIZES],
    FrameInterval 52 [LIST_INTERVALS, LIST_INTERVALS, LIST_INTERVALS],
    PixelFormat 208 [GET_FORMAT, SET_FORMAT, SET_FORMAT],
    StreamSettings 204 [SET_RATE, SET_RATE, SET_RATE],
    BufferRequest 20 [REQUEST_BUFFERS, REQUEST_BUFFERS, REQUEST_BUFFERS],
    Buffer 88 [QUERY_BUFFER, QUEUE, TAKE_BACK],
);

/// Kernel's `v4l2_capability`: what a device is and can do.
#[repr(C)]
#[derive(Default)]
struct Capability {
    driver: [u8; 16],
    card: [u8; 32],
    bus: [u8; 32],
    version: u32,
    capabilities: u32,
    device_capabilities: u32,
    reserved: [u32; 3],
}

/// Kernel's `v4l2_fmtdesc`: one pixel format of a list.
#[repr(C)]
struct FormatName {
    index: u32,
    kind: u32,
    flags: u32,
    description: [u8; 32],
    code: u32,
    bus_code: u32,
    reserved: [u32; 3],
}

impl Default for FormatName {
    fn default() -> Self {
        let (flags, description, code, bus_code) = (0, [0; 32], 0, 0);
        Self { index: 0, kind: CAPTURE, flags, description, code, bus_code, reserved: [0; 3] }
    }
}

/// Kernel's `v4l2_frmsizeenum`, one size of a list; a discrete size has two sides, a range the
/// minimum, maximum and step of each.
#[repr(C)]
#[derive(Default)]
struct FrameSize {
    index: u32,
    code: u32,
    kind: u32,
    sides: [u32; 6],
    reserved: [u32; 2],
}

/// Kernel's `v4l2_frmivalenum`, one interval of a list; a range has the shortest, the longest and
/// the step.
#[repr(C)]
#[derive(Default)]
struct FrameInterval {
    index: u32,
    code: u32,
    width: u32,
    height: u32,
    kind: u32,
    fractions: [u32; 6],
    reserved: [u32; 2],
}

/// Kernel's `v4l2_format`, whose union is aligned to eight bytes.
#[repr(C)]
struct PixelFormat {
    kind: u32,
    padding: u32,
    picture: PictureFormat,
    rest: [u32; 38],
}

impl Default for PixelFormat {
    fn default() -> Self {
        Self { kind: CAPTURE, padding: 0, picture: PictureFormat::default(), rest: [0; 38] }
    }
}

/// Kernel's `v4l2_pix_format`: the mode of a device, without its rate.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct PictureFormat {
    width: u32,
    height: u32,
    code: u32,
    field: u32,
    row_bytes: u32,
    picture_bytes: u32,
    colour_space: u32,
    private: u32,
    flags: u32,
    encoding: u32,
    quantization: u32,
    transfer: u32,
}

/// Kernel's `v4l2_streamparm` of a capture: the rate of a device.
#[repr(C)]
struct StreamSettings {
    kind: u32,
    capability: u32,
    mode: u32,
    numerator: u32,
    denominator: u32,
    rest: [u32; 46],
}

impl Default for StreamSettings {
    fn default() -> Self {
        let (numerator, denominator) = (0, 0);
        Self { kind: CAPTURE, capability: 0, mode: 0, numerator, denominator, rest: [0; 46] }
    }
}

/// Kernel's `v4l2_requestbuffers`: a number of buffers.
#[repr(C)]
struct BufferRequest {
    count: u32,
    kind: u32,
    memory: u32,
    rest: [u32; 2],
}

impl Default for BufferRequest {
    fn default() -> Self {
        Self { count: 0, kind: CAPTURE, memory: MAPPED, rest: [0; 2] }
    }
}

/// Kernel's `v4l2_buffer`, on 64-bit machines.
#[repr(C)]
struct Buffer {
    index: u32,
    kind: u32,
    bytes_used: u32,
    flags: u32,
    field: u32,
    padding: u32,
    /// Timestamp in seconds and microseconds, on the clock that `flags` names.
    time: [i64; 2],
    time_code: [u32; 4],
    sequence: u32,
    memory: u32,
    offset: u32,
    rest_of_offset: u32,
    length: u32,
    rest: [u32; 3],
}

impl Default for Buffer {
    fn default() -> Self {
        Self {
            index: 0,
            kind: CAPTURE,
            bytes_used: 0,
            flags: 0,
            field: 0,
            padding: 0,
            time: [0; 2],
            time_code: [0; 4],
            sequence: 0,
            memory: MAPPED,
            offset: 0,
            rest_of_offset: 0,
            length: 0,
            rest: [0; 3],
        }
    }
}

const QUERY_CAPABILITY: Opcode = opcode::read::<Capability>(b'V', 0);
const LIST_FORMATS: Opcode = opcode::read_write::<FormatName>(b'V', 2);
const GET_FORMAT: Opcode = opcode::read_write::<PixelFormat>(b'V', 4);
const SET_FORMAT: Opcode = opcode::read_write::<PixelFormat>(b'V', 5);
const REQUEST_BUFFERS: Opcode = opcode::read_write::<BufferRequest>(b'V', 8);
const QUERY_BUFFER: Opcode = opcode::read_write::<Buffer>(b'V', 9);
const QUEUE: Opcode = opcode::read_write::<Buffer>(b'V', 15);
const TAKE_BACK: Opcode = opcode::read_write::<Buffer>(b'V', 17);
const STREAM_ON: Opcode = opcode::write::<u32>(b'V', 18);
const STREAM_OFF: Opcode = opcode::write::<u32>(b'V', 19);
const SET_RATE: Opcode = opcode::read_write::<StreamSettings>(b'V', 22);
const LIST_SIZES: Opcode = opcode::read_write::<FrameSize>(b'V', 74);
const LIST_INTERVALS: Opcode = opcode::read_write::<FrameInterval>(b'V', 75);

/// Type of a stream, V4L2_BUF_TYPE_VIDEO_CAPTURE.
const CAPTURE: u32 = 1;
/// Kind of a buffer's memory, V4L2_MEMORY_MMAP.
const MAPPED: u32 = 1;
/// Order of rows in a picture without interlace, V4L2_FIELD_NONE.
const PROGRESSIVE: u32 = 1;
/// Kind of a listed size or interval that is no range, V4L2_FRMSIZE_TYPE_DISCRETE and
/// V4L2_FRMIVAL_TYPE_DISCRETE.
const DISCRETE: u32 = 1;
/// Capability to capture pictures, V4L2_CAP_VIDEO_CAPTURE; the others are
/// V4L2_CAP_VIDEO_CAPTURE_MPLANE, V4L2_CAP_META_CAPTURE, V4L2_CAP_STREAMING and
/// V4L2_CAP_DEVICE_CAPS, in this order.
const CAN_CAPTURE: u32 = 1;
const CAN_CAPTURE_PLANES: u32 = 0x1000;
const CAN_TELL_METADATA: u32 = 0x0080_0000;
const CAN_STREAM: u32 = 0x0400_0000;
const CAN_TELL_DEVICE: u32 = 0x8000_0000;
/// Flag of a buffer with missing data, V4L2_BUF_FLAG_ERROR.
const DAMAGED: u32 = 0x40;
/// Bits of a buffer's flags that name its clock, V4L2_BUF_FLAG_TIMESTAMP_MASK; the monotonic one is
/// V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC.
const CLOCK_MASK: u32 = 0xE000;
const CLOCK_MONOTONIC: u32 = 0x2000;
/// Bits of a buffer's flags that name the instant of its timestamp, V4L2_BUF_FLAG_TSTAMP_SRC_MASK;
/// the start of exposure is V4L2_BUF_FLAG_TSTAMP_SRC_SOE.
const SOURCE_MASK: u32 = 0x7_0000;
const SOURCE_START: u32 = 0x1_0000;
/// Range of samples from 0 to 255, V4L2_QUANTIZATION_FULL_RANGE; the other is
/// V4L2_QUANTIZATION_LIM_RANGE.
const FULL_RANGE: u32 = 1;
const LIMITED_RANGE: u32 = 2;
/// Number of buffers requested of the driver: one being filled, one waiting, one being read, and
/// one late.
const BUFFERS: u32 = 4;
/// Maximum number of formats, sizes or rates that are read of a device's list, larger than on any
/// device; further ones are ignored.
const COUNT_MAX: u32 = 256;
/// Sizes offered of a device with a continuous range, as far as they lie in it.
const USUAL_SIZES: [[u32; 2]; 7] =
    [[160, 120], [320, 240], [640, 480], [800, 600], [1024, 768], [1280, 720], SIZE_MAX];
const SIZE_MAX: [u32; 2] = [1920, 1080];

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    /// The expected numbers are those of a C compiler for linux/videodev2.h on x86-64.
    #[test]
    fn calls_and_fields_are_the_kernel_s() {
        let calls = [QUERY_CAPABILITY, LIST_FORMATS, SET_FORMAT, REQUEST_BUFFERS, QUERY_BUFFER];
        let expected = [0x8068_5600, 0xC040_5602, 0xC0D0_5605, 0xC014_5608, 0xC058_5609];
        assert_eq!(calls, expected);
        assert_eq!(GET_FORMAT, 0xC0D0_5604);
        assert_eq!([QUEUE, TAKE_BACK], [0xC058_560F, 0xC058_5611]);
        assert_eq!([STREAM_ON, STREAM_OFF, SET_RATE], [0x4004_5612, 0x4004_5613, 0xC0CC_5616]);
        assert_eq!([LIST_SIZES, LIST_INTERVALS], [0xC02C_564A, 0xC034_564B]);
        assert_eq!(offset_of!(Capability, capabilities), 84);
        assert_eq!(offset_of!(FormatName, code), 44);
        assert_eq!((offset_of!(FrameSize, kind), offset_of!(FrameSize, sides)), (8, 12));
        assert_eq!(offset_of!(FrameInterval, fractions), 20);
        assert_eq!(offset_of!(PixelFormat, picture), 8);
        assert_eq!(offset_of!(PictureFormat, row_bytes), 16);
        assert_eq!(offset_of!(PictureFormat, quantization), 40);
        assert_eq!(offset_of!(StreamSettings, numerator), 12);
        assert_eq!((offset_of!(Buffer, time), offset_of!(Buffer, sequence)), (24, 56));
        assert_eq!((offset_of!(Buffer, offset), offset_of!(Buffer, length)), (64, 72));
    }

    #[test]
    fn a_device_that_is_no_camera_is_refused() {
        let error = Kernel::open(Path::new("/no/such/camera")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let words = |path: &str| Kernel::open(Path::new(path)).unwrap_err().to_string();
        assert_eq!(words("/dev/null"), "it is no V4L2 device");
        assert!(words("/dev").starts_with("it is a folder,"));
        assert!(words("/proc/version").starts_with("it is a file,"));
    }

    #[test]
    fn of_a_range_of_sizes_the_largest_within_a_bound_is_taken() {
        assert_eq!(largest(1920, [160, 640, 16]), 640);
        assert_eq!(largest(1920, [160, 4000, 16]), 1920);
        assert_eq!(largest(1080, [120, 3000, 16]), 1080);
        assert_eq!(largest(1080, [121, 3000, 50]), 1071);
        assert_eq!(largest(1080, [2000, 3000, 16]), 2000);
        assert_eq!(largest(1080, [7, 3, 0]), 7);
    }
}

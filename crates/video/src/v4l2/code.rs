use std::fmt;

use crate::pixels::Format;

/// Pixel format of a device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Code {
    /// 4:2:0 in two planes.
    Nv12,
    /// 4:2:0 in three planes.
    I420,
    /// 4:2:2, two pixels in four bytes, luma first.
    Yuyv,
    /// 4:2:2, two pixels in four bytes, chroma first.
    Uyvy,
    /// Luma only: black and white.
    Grey,
    /// One JPEG per picture: most USB cameras have their large sizes only in this format.
    Mjpeg,
    /// Unsupported format, by its four-character code.
    Other([u8; 4]),
}

impl Code {
    /// Every supported format, its name, and its four-character code.
    pub(super) const ALL: [(Self, &str, [u8; 4]); 7] = [
        (Self::Nv12, "nv12", *b"NV12"),
        (Self::I420, "i420", *b"YU12"),
        (Self::Yuyv, "yuyv", *b"YUYV"),
        (Self::Uyvy, "uyvy", *b"UYVY"),
        (Self::Grey, "grey", *b"GREY"),
        (Self::Mjpeg, "mjpeg", *b"MJPG"),
        (Self::Mjpeg, "jpeg", *b"JPEG"),
    ];

    /// Returns the layout of the pixels; `None` for compressed and unsupported formats.
    pub fn pixels(self) -> Option<Format> {
        match self {
            Self::Nv12 => Some(Format::Nv12),
            Self::I420 => Some(Format::I420),
            Self::Yuyv => Some(Format::Yuyv),
            Self::Uyvy => Some(Format::Uyvy),
            Self::Grey => Some(Format::Grey),
            Self::Mjpeg | Self::Other(_) => None,
        }
    }

    /// Returns the reason why the format is not supported; `None` if it is.
    pub(super) fn obstacle(self) -> Option<&'static str> {
        let Self::Other(four) = self else { return None };
        Some(match &four {
            b"H264" | b"AVC1" | b"M264" => "H.264 is not decoded here yet",
            b"HEVC" => "H.265 is not decoded here",
            b"Y10 " | b"Y12 " | b"Y14 " | b"Y16 " => "grey of more than 8 bits is not read here",
            b"BA81" | b"GBRG" | b"GRBG" | b"RGGB" => {
                "a sensor's raw colours are not read here: its driver needs an ISP before it"
            }
            _ => "this form of pixels is not read here",
        })
    }

    pub(super) fn of(four: u32) -> Self {
        let four = four.to_le_bytes();
        let found = Self::ALL.iter().find(|(.., code)| *code == four);
        found.map_or(Self::Other(four), |(code, ..)| *code)
    }

    pub(super) fn four(self) -> u32 {
        let four = match self {
            Self::Other(four) => Some(four),
            _ => Self::ALL.iter().find(|(code, ..)| *code == self).map(|(.., four)| *four),
        };
        u32::from_le_bytes(four.unwrap_or_default())
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Other(four) = self {
            let letters = four.map(|letter| match letter.is_ascii_graphic() {
                true => char::from(letter.to_ascii_lowercase()),
                false => ' ',
            });
            return f.write_str(String::from_iter(letters).trim());
        }
        let found = Self::ALL.iter().find(|(code, ..)| code == self);
        f.write_str(found.map_or("", |(_, name, _)| name))
    }
}

//! Video4Linux cameras: a device behind a trait, the choice of its mode, and its pictures.

mod code;
mod device;
mod fraction;
mod mode;
mod native;

use std::fmt;
use std::str::FromStr;

pub use code::Code;
pub use device::{Device, Set, Taken};
pub use fraction::Fraction;
pub use mode::{Mode, list};
pub use native::{Kernel, check_device};

use mode::SIDE_MAX;

/// A requested mode, such as `mjpeg 1280x720@30`, or any part of that.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Wanted {
    /// Requested pixel format; `None` for any.
    pub code: Option<Code>,
    /// Requested pixels in a row, and rows; `None` for any.
    pub size: Option<[u32; 2]>,
    /// Requested pictures per second; `None` for any.
    pub pictures_per_second: Option<f64>,
}

impl Wanted {
    /// Returns the best usable mode among `modes` that has every requested part; `None` if there is
    /// none. In this order it prefers at most 1920x1080, at least 25 pictures/s, a size close to
    /// 1280x720, a rate close to `usual_rate`, and raw pixels over JPEGs.
    pub fn choose(&self, modes: &[Mode], usual_rate: f64) -> Option<Mode> {
        let close = |a: f64, b: f64| (a - b).abs() <= RATE_ERROR * b;
        let rate = |mode: &Mode| mode.pictures_per_second().unwrap_or(usual_rate);
        let fits = |mode: &&Mode| {
            let has_size = self.size.is_none_or(|size| size == mode.size);
            let has_code = self.code.is_none_or(|code| code == mode.code);
            let has_rate = self.pictures_per_second.is_none_or(|wanted| close(rate(mode), wanted));
            mode.obstacle().is_none() && has_size && has_code && has_rate
        };
        let wanted_rate = self.pictures_per_second.unwrap_or(usual_rate);
        let cost = |mode: &Mode| {
            let is_large = mode.size[0] > SIZE_MAX[0] || mode.size[1] > SIZE_MAX[1];
            let [width, height] = mode.size.map(f64::from);
            let distance = (width * height / SIZE_PREFERRED).log2().abs();
            let is_slow = rate(mode) < RATE_LEAST.min(wanted_rate) * (1.0 - RATE_ERROR);
            ((is_large, is_slow), distance, (rate(mode) - wanted_rate).abs(), mode.code)
        };
        modes.iter().filter(fits).copied().min_by(|a, b| {
            let (a, b) = (cost(a), cost(b));
            let by_size = a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
            by_size.then(a.2.total_cmp(&b.2)).then(a.3.cmp(&b.3))
        })
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code.map(|code| code.to_string());
        let size = self.size.map(|[width, height]| format!("{width}x{height}"));
        let rate = self.pictures_per_second.map(|rate| format!("@{rate}"));
        let size = (size.is_some() || rate.is_some())
            .then(|| size.unwrap_or_default() + &rate.unwrap_or_default());
        let parts: Vec<String> = code.into_iter().chain(size).collect();
        f.write_str(&parts.join(" "))
    }
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let malformed = || format!("{text:?} is no mode such as \"mjpeg 1280x720@30\"");
        let mut wanted = Self::default();
        for part in text.split_whitespace() {
            if let Some((code, ..)) = Code::ALL.iter().find(|(_, name, _)| *name == part) {
                wanted.code = Some(*code);
                continue;
            }
            if ["h264", "h265", "hevc"].contains(&part) {
                return Err(format!("{text:?}: {part} is not decoded here: take pixels or mjpeg"));
            }
            let (size, rate) = part.split_once('@').unwrap_or((part, ""));
            if !size.is_empty() {
                let sides = size.split_once('x').ok_or_else(malformed)?;
                let side =
                    |side: &str| side.parse().ok().filter(|side| (2..=SIDE_MAX).contains(side));
                let sides = side(sides.0).zip(side(sides.1)).ok_or_else(malformed)?;
                wanted.size = Some([sides.0, sides.1]);
            }
            if !rate.is_empty() {
                let rate = rate.parse().ok().filter(|rate| (1.0..=240.0).contains(rate));
                wanted.pictures_per_second = Some(rate.ok_or_else(malformed)?);
            } else if part.contains('@') {
                return Err(malformed());
            }
        }
        Ok(wanted)
    }
}

/// Largest size that is chosen, unless a larger one is requested or no other is available.
const SIZE_MAX: [u32; 2] = [1920, 1080];
/// Preferred size in pixels if none is requested; documented in docs/camera.md under
/// `camera_mode`.
const SIZE_PREFERRED: f64 = 1280.0 * 720.0;
/// Pictures per second below which a mode is chosen only if no other is available or so few are
/// requested: driving suffers more from fewer pictures than from fewer pixels.
const RATE_LEAST: f64 = 25.0;
/// Relative tolerance of rates: 30000/1001 counts as 30.
const RATE_ERROR: f64 = 0.01;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mode(code: Code, size: [u32; 2], rate: u32) -> Mode {
        Mode { code, size, interval: Fraction::new(1, rate) }
    }

    /// Returns the modes of a common USB camera of 1080 rows: raw pixels only within the bus
    /// bandwidth.
    fn usb_camera() -> Vec<Mode> {
        let mut modes = Vec::new();
        for (size, raw, coded) in [
            ([640, 480], 30, 60),
            ([800, 600], 24, 30),
            ([1280, 720], 10, 30),
            ([1920, 1080], 5, 30),
            ([2592, 1944], 2, 15),
        ] {
            modes.extend([mode(Code::Yuyv, size, raw), mode(Code::Mjpeg, size, coded)]);
        }
        modes
    }

    fn chosen(wanted: &str, modes: &[Mode]) -> String {
        let mode = wanted.parse::<Wanted>().unwrap().choose(modes, 60.0);
        mode.map_or("none".to_owned(), |mode| mode.to_string())
    }

    #[test]
    fn a_mode_is_chosen_by_name_or_by_what_fits_best() {
        let modes = usb_camera();
        assert_eq!(chosen("", &modes), "mjpeg 1280x720@30");
        assert_eq!(chosen("yuyv", &modes), "yuyv 640x480@30");
        assert_eq!(chosen("1920x1080", &modes), "mjpeg 1920x1080@30");
        assert_eq!(chosen("@60", &modes), "mjpeg 640x480@60");
        assert_eq!(chosen("yuyv 1280x720@10", &modes), "yuyv 1280x720@10");
        assert_eq!(chosen("2592x1944", &modes), "mjpeg 2592x1944@15");
        assert_eq!(chosen("nv12", &modes), "none");
        assert_eq!(chosen("640x480@50", &modes), "none");
        // A board camera that reports no rate; and raw pixels before JPEGs if both are equally
        // good.
        let unknown = Mode { interval: None, ..mode(Code::Nv12, [1280, 720], 1) };
        assert_eq!(chosen("", &[modes.clone(), vec![unknown]].concat()), "nv12 1280x720");
        let ntsc = Mode { interval: Fraction::new(1001, 30_000), ..unknown };
        assert_eq!(chosen("@30", &[ntsc]), "nv12 1280x720@29.97");
    }

    #[test]
    fn a_mode_s_name_is_read_as_it_is_written() {
        for text in ["mjpeg 1280x720@30", "yuyv 640x480@7.5", "i420 2x2"] {
            let wanted: Wanted = text.parse().unwrap();
            assert!(wanted.code.is_some() && wanted.size.is_some(), "{text}");
        }
        assert!(
            "h264 1920x1080".parse::<Wanted>().unwrap_err().contains("h264 is not decoded here")
        );
        for text in ["mjpeg 1280x720@30", "uyvy", "640x480", "@7.5", "grey @60", ""] {
            assert_eq!(text.parse::<Wanted>().unwrap().to_string(), text);
        }
        for text in ["1280", "1280x", "1280x720@", "0x720", "@0", "@NaN"] {
            assert!(text.parse::<Wanted>().is_err(), "{text}");
        }
    }

    #[test]
    fn pixel_format_codes_are_their_four_letters() {
        let other = Code::Other(*b"H264");
        for (code, ..) in Code::ALL.into_iter().chain([(other, "", [0; 4])]) {
            assert_eq!(Code::of(code.four()), code);
        }
        assert_eq!(Code::of(u32::from_le_bytes(*b"JPEG")), Code::Mjpeg);
        assert_eq!(
            (other.to_string(), Code::Other(*b"Y16 ").to_string()),
            ("h264".into(), "y16".into())
        );
        assert_eq!(Code::of(0).to_string(), "");
    }

    /// Some real cameras have neither MJPEG nor YUYV.
    #[test]
    fn every_mode_is_listed_with_what_speaks_against_it() {
        let modes = [
            mode(Code::Uyvy, [1280, 720], 30),
            mode(Code::Grey, [640, 400], 60),
            mode(Code::Other(*b"H264"), [1920, 1080], 30),
            mode(Code::Mjpeg, [853, 481], 30),
            mode(Code::Other(*b"Y16 "), [160, 120], 9),
            mode(Code::Mjpeg, [8000, 10], 9),
        ];
        assert_eq!(
            list(&modes),
            "uyvy 1280x720@30, grey 640x400@60, h264 1920x1080@30 (H.264 is not decoded here yet), \
             mjpeg 853x481@30 (its sides are not both even), \
             y16 160x120@9 (grey of more than 8 bits is not read here), \
             mjpeg 8000x10@9 (its shorter side is too short for its longer one)"
        );
        assert_eq!(chosen("", &modes), "uyvy 1280x720@30");
        assert_eq!(chosen("grey", &modes), "grey 640x400@60");
        assert_eq!(chosen("853x481", &modes), "none");
        assert_eq!(chosen("", &modes[2..]), "none");
        let thermal = [mode(Code::Yuyv, [160, 120], 9)];
        assert_eq!(chosen("", &thermal), "yuyv 160x120@9");
        let many = vec![modes[0]; 40];
        assert!(list(&many).ends_with(", and 8 more"));
    }

    #[test]
    fn a_camera_of_large_modes_alone_is_taken_in_the_least_of_them() {
        let large = [[2592, 1944], [4056, 3040]].map(|size| mode(Code::Mjpeg, size, 15));
        assert_eq!(chosen("", &large), "mjpeg 2592x1944@15");
    }

    proptest! {
        #[test]
        fn any_name_and_any_modes_are_taken(
            text: String,
            modes in proptest::collection::vec((0u32..9000, 0u32..9000, any::<u32>(), any::<u32>()), 0..8),
            rate: f64,
        ) {
            let mode = |(width, height, over, under)| Mode {
                code: Code::of(over), size: [width, height], interval: Fraction::new(over, under),
            };
            let modes: Vec<Mode> = modes.into_iter().map(mode).collect();
            let _ = text.parse::<Wanted>().map(|wanted| wanted.choose(&modes, rate));
            for chosen in [Wanted::default().choose(&modes, rate)].into_iter().flatten() {
                prop_assert_eq!(chosen.obstacle(), None);
            }
            let _ = list(&modes);
        }
    }
}

use flatbuffers::FlatBufferBuilder;

use crate::Error;
use crate::codec::codec;
use crate::generated::video_feedback::{self as wire_feedback, VideoFeedback as Root};
use crate::wire::{Kind, length, within};

/// Feedback from a video receiver to the encoders: reception state and requests.
///
/// About 28 bytes on the wire (schemas/video_feedback.fbs), plus 8 for each reported strip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VideoFeedback {
    /// Reception state of each strip, by the strip's number; `None` for a strip without a report.
    pub strips: [Option<StripReport>; VideoFeedback::STRIPS_MAX],
    /// Keyframe requests: if bit n is set, strip n's next slice should be an IDR.
    pub keyframe_strips: u8,
    /// Frame decimation: the encoder codes every n-th picture, 1 to
    /// [`PICTURE_INTERVAL_MAX`](Self::PICTURE_INTERVAL_MAX). More pictures than the screen can show
    /// would only add delay.
    pub picture_interval: u8,
    /// Maximum pixels of a picture that the screen shows in time; `None` if not reported.
    pub pixels_max: Option<u32>,
}

/// Reception state of one strip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StripReport {
    /// Number of the newest picture shown, or held behind a reported loss, in the vehicle camera's
    /// numbering.
    pub newest: u32,
    /// Distance in pictures from `newest` back to the newest that was decoded as its encoder has
    /// it, at most 254; `None` if there is none within that range.
    pub clean_before: Option<u8>,
    /// Distance in pictures from `newest` back to the newest that did not arrive, at most 254;
    /// `None` if there is none within that range.
    pub lost_before: Option<u8>,
}

codec!(VideoFeedback);

impl VideoFeedback {
    /// Maximum number of strips in a report.
    pub const STRIPS_MAX: usize = 8;
    /// Maximum picture interval: with fewer pictures than one in eight, driving is impossible.
    pub const PICTURE_INTERVAL_MAX: u8 = 8;

    fn write(&self, builder: &mut FlatBufferBuilder<'static>) {
        let strips: Vec<_> = (0..)
            .zip(&self.strips)
            .filter_map(|(strip, report)| report.as_ref().map(|report| report.to_wire(strip)))
            .collect();
        let strips = (!strips.is_empty()).then(|| builder.create_vector(&strips));
        let arguments = wire_feedback::VideoFeedbackArgs {
            strips,
            keyframe_strips: self.keyframe_strips,
            picture_interval: self.picture_interval,
            pixels_max: self.pixels_max.unwrap_or_default(),
        };
        let root = Root::create(builder, &arguments);
        wire_feedback::finish_video_feedback_buffer(builder, root);
    }

    fn read(root: Root<'_>) -> Result<Self, Error> {
        let mut strips = [None; Self::STRIPS_MAX];
        let reports = root.strips().unwrap_or_default();
        length("strips", reports.len(), Self::STRIPS_MAX)?;
        for report in reports {
            let last = Self::STRIPS_MAX as u16 - 1;
            let strip = within("strips.strip", report.strip().into(), 0, last)?;
            strips[usize::from(strip)] = Some(StripReport::from_wire(report));
        }
        let (interval, most) = (root.picture_interval(), Self::PICTURE_INTERVAL_MAX);
        let picture_interval =
            within("picture_interval", interval.into(), 1, most.into()).map(|_| interval)?;
        let pixels_max = Some(root.pixels_max()).filter(|pixels| *pixels > 0);
        Ok(Self { strips, keyframe_strips: root.keyframe_strips(), picture_interval, pixels_max })
    }
}

impl Default for VideoFeedback {
    /// Returns feedback without reports or requests: every picture is coded.
    fn default() -> Self {
        let strips = Default::default();
        Self { strips, keyframe_strips: 0, picture_interval: 1, pixels_max: None }
    }
}

impl StripReport {
    /// Returns whether the newest picture may differ from the encoder's: no picture after the last
    /// lost one was decoded as its encoder has it.
    pub fn is_corrupt(&self) -> bool {
        let far = |pictures: Option<u8>| pictures.unwrap_or(FAR);
        far(self.clean_before) > far(self.lost_before)
    }

    fn to_wire(self, strip: u8) -> wire_feedback::StripReport {
        let before = |pictures: Option<u8>| pictures.unwrap_or(FAR);
        let (clean, lost) = (before(self.clean_before), before(self.lost_before));
        wire_feedback::StripReport::new(self.newest, strip, clean, lost)
    }

    fn from_wire(wire: &wire_feedback::StripReport) -> Self {
        let before = |pictures: u8| (pictures != FAR).then_some(pictures);
        Self {
            newest: wire.newest(),
            clean_before: before(wire.clean_before()),
            lost_before: before(wire.lost_before()),
        }
    }
}

/// Distance value that means that no picture is in range.
const FAR: u8 = u8::MAX;

const KIND: Kind = Kind {
    name: "video feedback",
    identifier: Some(wire_feedback::VIDEO_FEEDBACK_IDENTIFIER),
    bytes_max: 256,
    tables_max: 1,
    depth_max: 1,
};

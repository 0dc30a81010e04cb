//! Any camera picture, and any text as a camera mode, is accepted or rejected.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tautline_fuzz::Input;
use tautline_video::pixels::{Format, Image};
use tautline_video::v4l2::Wanted;
use tautline_video::{Layout, Picture};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = text.parse::<Wanted>();
    }
    let mut input = Input(bytes);
    let format = [Format::Yuyv, Format::Nv12, Format::I420][input.up_to(2)];
    let size =
        [(); 2].map(|()| if input.byte() == 0 { input.word() as usize } else { input.up_to(99) });
    let mut picture = Picture::new(32, 48).expect("whole macroblocks");
    let before = picture.clone();
    let stride = [format.row_bytes(size[0]), input.word() as usize][input.up_to(1)];
    let first_row = input.up_to(99) & !1;
    let image = Image { format, width: size[0], height: size[1], stride, bytes: input.0 };
    match image.fill(first_row, &mut picture) {
        Ok(()) => assert!(image.is_whole()),
        Err(_) => assert!(picture == before),
    }
    let strips = input.word() as usize;
    for strips in [strips, strips % 64] {
        if let Ok(layout) = Layout::with_strips(size[0], size[1], strips) {
            assert_eq!(layout.strip_rows(strips - 1).end, size[1]);
        }
    }
});

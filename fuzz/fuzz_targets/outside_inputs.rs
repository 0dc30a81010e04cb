//! Whatever a camera gives as a picture, or a file as a table of quantizers, it is taken or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tautline_fuzz::Input;
use tautline_video::pixels::{Format, fill};
use tautline_video::{Layout, Picture, QpTable};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(csv) = std::str::from_utf8(bytes) {
        for csv in [csv, &format!("slice_bytes,qp_intra,qp_predicted\n{csv}")] {
            if let Ok(table) = QpTable::parse(csv) {
                assert!(matches!(QpTable::parse(&table.to_csv()), Ok(again) if again == table));
            }
        }
    }
    let mut input = Input(bytes);
    let format = [Format::Yuyv, Format::Nv12, Format::I420][input.up_to(2)];
    let size =
        [(); 2].map(|()| if input.byte() == 0 { input.word() as usize } else { input.up_to(99) });
    let mut picture = Picture::new(32, 48).expect("whole macroblocks");
    let before = picture.clone();
    if fill(&mut picture, format, size[0], size[1], input.0).is_err() {
        assert!(picture == before);
    }
    let strips = input.word() as usize;
    for strips in [strips, strips % 64] {
        if let Ok(layout) = Layout::with_strips(size[0], size[1], strips) {
            assert_eq!(layout.strip_rows(strips - 1).end, size[1]);
        }
    }
});

use proptest::prelude::*;

use super::*;
use crate::h264::bits::Writer;

/// Returns a sequence parameter set of 4x2 macroblocks with 4 bits of frame_num; `order` writes its
/// order types.
fn sequence(order: impl Fn(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.bits(0x42C01F, 24);
    writer.unsigned(0);
    writer.unsigned(0);
    order(&mut writer);
    writer.unsigned(1);
    writer.bit(false);
    writer.unsigned(3);
    writer.unsigned(1);
    writer.bit(true);
    writer.bits(0b100, 3);
    writer.finish()
}

fn picture_parameters(cabac: bool) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.unsigned(0);
    writer.unsigned(0);
    writer.bit(cabac);
    writer.bit(false);
    writer.unsigned(0);
    writer.unsigned(0);
    writer.unsigned(0);
    writer.bits(0, 3);
    writer.signed(0);
    writer.signed(0);
    writer.signed(0);
    writer.bits(0b100, 3);
    writer.finish()
}

/// Writes the fields of order type 0, with pic_order_cnt_lsb of 5 bits.
fn low_bits(writer: &mut Writer) {
    writer.unsigned(0);
    writer.unsigned(1);
}

fn idr(order: impl Fn(&mut Writer), order_bits: u32) -> Vec<u8> {
    let mut stream = Vec::new();
    nal::write(0x67, &sequence(order), &mut stream);
    nal::write(0x68, &picture_parameters(false), &mut stream);
    let mut writer = Writer::default();
    writer.unsigned(0);
    writer.unsigned(7);
    writer.unsigned(0);
    writer.bits(0, 4);
    writer.unsigned(0);
    writer.bits(0, order_bits);
    writer.bits(0xABCD, 16);
    nal::write(0x65, &writer.finish(), &mut stream);
    stream
}

fn predicted(frame: u32, order: u32, order_bits: u32) -> Vec<u8> {
    let mut stream = Vec::new();
    let mut writer = Writer::default();
    writer.unsigned(0);
    writer.unsigned(5);
    writer.unsigned(0);
    writer.bits(frame & 15, 4);
    writer.bits(order & ((1 << order_bits) - 1), order_bits);
    writer.bits(0x0000_00AB, 32);
    nal::write(0x41, &writer.finish(), &mut stream);
    stream
}

fn numbers(concealer: &Concealer, access_unit: &[u8]) -> (u32, u32) {
    let units = nal::split(access_unit).unwrap();
    let picture = CodedPicture::read(&units, &concealer.parameters).unwrap();
    let numbers = Numbers::of(&picture.header);
    (numbers.frame, numbers.order)
}

#[test]
fn skips_take_the_numbers_of_the_lost_and_wrap_with_them() {
    let mut concealer = Concealer::new();
    concealer.pass(&idr(low_bits, 5)).unwrap().unwrap();
    for number in 1..100u32 {
        let coded = predicted(number, number * 2, 5);
        let handed_on = if number % 3 == 0 {
            concealer.skip().unwrap()
        } else {
            let bytes = concealer.pass(&coded).unwrap().unwrap();
            assert!(matches!(bytes, Cow::Borrowed(_)), "picture {number}");
            bytes.into_owned()
        };
        assert_eq!(numbers(&concealer, &handed_on), (number % 16, number * 2 % 32));
    }
}

#[test]
fn a_step_of_one_in_the_picture_order_is_learnt() {
    let mut concealer = Concealer::new();
    concealer.pass(&idr(low_bits, 5)).unwrap().unwrap();
    concealer.pass(&predicted(1, 1, 5)).unwrap().unwrap();
    let skip = concealer.skip().unwrap();
    assert_eq!(numbers(&concealer, &skip), (2, 2));
}

#[test]
fn pictures_are_renumbered_where_the_counts_have_come_apart() {
    let mut concealer = Concealer::new();
    concealer.pass(&idr(low_bits, 5)).unwrap().unwrap();
    concealer.pass(&predicted(1, 2, 5)).unwrap().unwrap();
    assert!(!concealer.is_corrupt());
    // An IDR was lost: the encoder counts from 1 again.
    concealer.skip().unwrap();
    let bytes = concealer.pass(&predicted(1, 2, 5)).unwrap().unwrap().into_owned();
    assert_eq!(numbers(&concealer, &bytes), (3, 6));
    assert!(concealer.is_corrupt());
    // The rest of the slice is unchanged.
    let tail = |bytes: &[u8]| nal::split(bytes).unwrap()[0].payload()[3..].to_vec();
    assert_eq!(tail(&bytes), tail(&predicted(1, 2, 5)));
    // A gap that was not counted is closed too.
    let bytes = concealer.pass(&predicted(7, 14, 5)).unwrap().unwrap().into_owned();
    assert_eq!(numbers(&concealer, &bytes), (4, 8));
    concealer.pass(&idr(low_bits, 5)).unwrap().unwrap();
    assert!(!concealer.is_corrupt());
    assert!(matches!(concealer.pass(&predicted(1, 2, 5)).unwrap(), Some(Cow::Borrowed(_))));
}

#[test]
fn a_predicted_slice_of_known_parameters_waits_for_an_idr() {
    let mut concealer = Concealer::new();
    let mut parameters = Parameters::default();
    for unit in nal::split(&idr(low_bits, 5)).unwrap().iter().take(2) {
        parameters.take(unit).unwrap();
    }
    concealer.parameters = parameters;
    assert_eq!(concealer.pass(&predicted(4, 8, 5)).unwrap(), None);
    assert!(concealer.skip().is_none());
}

#[test]
fn streams_that_cannot_be_concealed_are_refused() {
    let mut cabac = Vec::new();
    nal::write(0x68, &picture_parameters(true), &mut cabac);
    let mut concealer = Concealer::new();
    assert!(matches!(concealer.pass(&cabac), Err(Error::Unsupported { what: "CABAC" })));
    let orders: [fn(&mut Writer); 2] = [
        |writer| writer.unsigned(2),
        |writer| {
            writer.unsigned(1);
            writer.bit(true);
            writer.signed(0);
            writer.signed(0);
            writer.unsigned(0);
        },
    ];
    for order in orders {
        let mut concealer = Concealer::new();
        concealer.pass(&idr(order, 0)).unwrap().unwrap();
        concealer.pass(&predicted(1, 0, 0)).unwrap().unwrap();
        let skip = concealer.skip().unwrap();
        assert_eq!(numbers(&concealer, &skip), (2, 0));
        let before = format!("{concealer:?}");
        let mut unreferenced = predicted(3, 0, 0);
        unreferenced[4] = 0x01;
        assert!(concealer.pass(&unreferenced).is_err());
        let twice = [predicted(3, 0, 0), predicted(4, 0, 0)].concat();
        assert!(concealer.pass(&twice).is_err());
        assert_eq!(format!("{concealer:?}"), before);
    }
}

proptest! {
    #[test]
    fn any_bytes_pass_without_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..80),
        kind in prop::sample::select(vec![0x67u8, 0x68, 0x65, 0x41, 0x06]),
    ) {
        let mut concealer = Concealer::new();
        concealer.pass(&idr(low_bits, 5)).unwrap();
        let _ = concealer.pass(&bytes);
        let mut framed = vec![0, 0, 1, kind];
        framed.extend(&bytes);
        let _ = concealer.pass(&framed);
        prop_assert!(concealer.skip().is_some());
    }

    #[test]
    fn altered_access_units_pass_or_are_refused_without_panic(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut concealer = Concealer::new();
        concealer.pass(&idr(low_bits, 5)).unwrap();
        for mut bytes in [idr(low_bits, 5), predicted(1, 2, 5), predicted(9, 2, 5)] {
            for (at, value) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *value;
            }
            bytes.truncate(cut.index(bytes.len()) + 1);
            if let Ok(Some(handed_on)) = concealer.pass(&bytes) {
                prop_assert!(nal::split(&handed_on).is_ok());
            }
            prop_assert!(concealer.skip().is_some());
        }
    }
}

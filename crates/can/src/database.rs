use std::collections::BTreeMap;

use can_dbc::{
    AttributeValue, ByteOrder, Dbc, MessageId, MultiplexIndicator, NumericValue,
    SignalExtendedValueType, ValueDescription, ValueType,
};

use crate::bits::{Bits, Order};
use crate::frame::Id;
use crate::message::Message;
use crate::mistake::{Mistake, nearest};
use crate::signal::{Number, Selection, Signal};

/// The messages of a DBC file.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Database {
    messages: Vec<Message>,
}

impl Database {
    /// Reads the text of a DBC file.
    ///
    /// Messages and signals that cannot be used are kept with the reason: they are mistakes only
    /// if a map names them.
    ///
    /// # Errors
    /// A mistake if the text is no DBC file; its text names the place only of a syntax error.
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        let dbc = Dbc::try_from(text).map_err(|error| {
            let error = error.to_string();
            Mistake::of_dbc(format!("it is no DBC file: {}", error.trim()))
        })?;
        let facts = Facts::of(&dbc);
        Ok(Self { messages: dbc.messages.iter().filter_map(|it| message(it, &facts)).collect() })
    }

    /// Reads the bytes of a DBC file: UTF-8, or else one character per byte (Latin-1).
    ///
    /// # Errors
    /// Same as [`parse`](Self::parse).
    pub fn read(bytes: &[u8]) -> Result<Self, Mistake> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::parse(text),
            // Units such as °C; of the characters in which the two differ, a DBC has none.
            Err(_) => Self::parse(&bytes.iter().copied().map(char::from).collect::<String>()),
        }
    }

    /// Returns the messages in the file's order.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns the message with this name.
    ///
    /// # Errors
    /// A text that says so and suggests similar names, if there is none.
    pub(crate) fn message(&self, name: &str) -> Result<&Message, String> {
        let found = self.messages.iter().find(|message| message.name == name);
        found.ok_or_else(|| {
            let known = self.messages.iter().map(|message| &*message.name);
            format!("the DBC has no message {name}: {}", nearest(name, known))
        })
    }
}

/// Attributes and lists that a DBC file keeps apart from its messages.
#[derive(Default)]
struct Facts<'a> {
    floats: BTreeMap<Key<'a>, SignalExtendedValueType>,
    names: BTreeMap<Key<'a>, Vec<(i64, String)>>,
    initial: BTreeMap<Key<'a>, f64>,
    selections: BTreeMap<Key<'a>, (&'a str, Ranges)>,
    periods: BTreeMap<u32, u64>,
}

/// A message's identifier, with bit 31 set for one of 29 bits, and a signal's name.
type Key<'a> = (u32, &'a str);

/// First and last value of each range that selects a signal.
type Ranges = Vec<(u64, u64)>;

impl<'a> Facts<'a> {
    fn of(dbc: &'a Dbc) -> Self {
        let mut facts = Self::default();
        for list in &dbc.signal_extended_value_type_list {
            let key = (list.message_id.raw(), &*list.signal_name);
            facts.floats.insert(key, list.signal_extended_value_type);
        }
        for description in &dbc.value_descriptions {
            if let ValueDescription::Signal { message_id, name, value_descriptions } = description {
                let values = value_descriptions.iter();
                let names = values.map(|value| (value.id, value.description.clone())).collect();
                facts.names.insert((message_id.raw(), name), names);
            }
        }
        for value in &dbc.attribute_values_signal {
            if let Some(number) = number(&value.value).filter(|_| value.name == INITIAL) {
                facts.initial.insert((value.message_id.raw(), &value.signal_name), number);
            }
        }
        for value in &dbc.attribute_values_message {
            let period =
                number(&value.value).filter(|number| value.name == PERIOD && *number >= 1.0);
            facts.periods.extend(period.map(|period| (value.message_id.raw(), period as u64)));
        }
        for extended in &dbc.extended_multiplex {
            let ranges = extended.mappings.iter().map(|map| (map.min_value, map.max_value));
            let selection = (&*extended.multiplexor_signal_name, ranges.collect());
            let key = (extended.message_id.raw(), &*extended.signal_name);
            facts.selections.insert(key, selection);
        }
        facts
    }
}

/// Returns a message; `None` if it is the file's collection of signals without a message.
fn message(dbc: &can_dbc::Message, facts: &Facts<'_>) -> Option<Message> {
    let id = match dbc.id {
        MessageId::Standard(id) => Id::Standard(id),
        MessageId::Extended(id) => Id::Extended(id),
    };
    if dbc.name == INDEPENDENT {
        return None;
    }
    let size = usize::try_from(dbc.size).unwrap_or(usize::MAX);
    let mut message = Message {
        name: dbc.name.clone(),
        id,
        size: size.min(crate::Frame::BYTES_MAX),
        signals: Vec::new(),
        broken: Vec::new(),
        period_ms: facts.periods.get(&dbc.id.raw()).copied(),
    };
    let is_sound = id.checked().is_some() && size <= crate::Frame::BYTES_MAX;
    for its in &dbc.signals {
        let made = match is_sound {
            true => signal(its, message.size, (dbc.id.raw(), &its.name), facts),
            false => Err(format!("its message has the identifier {id} and {size} bytes")),
        };
        match made {
            Ok(_) if message.index(&its.name).is_some() => {
                message.broken.push((its.name.clone(), "the message has two of this name".into()));
            }
            Ok(signal) => message.signals.push(signal),
            Err(why) => message.broken.push((its.name.clone(), why)),
        }
    }
    select(&mut message, dbc, facts);
    Some(message)
}

fn signal(
    dbc: &can_dbc::Signal,
    size: usize,
    key: Key<'_>,
    facts: &Facts<'_>,
) -> Result<Signal, String> {
    let order = match dbc.byte_order {
        ByteOrder::LittleEndian => Order::Little,
        ByteOrder::BigEndian => Order::Big,
    };
    let bits = Bits::new(dbc.start_bit, dbc.size, order, size).ok_or_else(|| {
        format!("{} bits from {} are not in {size} bytes", dbc.size, dbc.start_bit)
    })?;
    let number = match (facts.floats.get(&key), dbc.value_type) {
        (Some(SignalExtendedValueType::IEEEfloat32Bit), _) => Number::Float32,
        (Some(SignalExtendedValueType::IEEEdouble64bit), _) => Number::Float64,
        (_, ValueType::Signed) => Number::Signed,
        (_, ValueType::Unsigned) => Number::Unsigned,
    };
    let expected = match number {
        Number::Float32 => 32,
        Number::Float64 => 64,
        Number::Signed | Number::Unsigned => bits.length(),
    };
    if bits.length() != expected {
        return Err(format!("a floating-point number of {} bits", bits.length()));
    }
    if dbc.factor == 0.0 || !dbc.factor.is_finite() || !dbc.offset.is_finite() {
        return Err(format!("its factor is {} and its offset {}", dbc.factor, dbc.offset));
    }
    let range = (limit(dbc.min), limit(dbc.max));
    let mut signal = Signal {
        name: dbc.name.clone(),
        bits,
        number,
        factor: dbc.factor,
        offset: dbc.offset,
        range: Some(range).filter(|(min, max)| min < max),
        unit: dbc.unit.clone(),
        names: facts.names.get(&key).cloned().unwrap_or_default(),
        initial: 0,
        selection: None,
    };
    if let Some(initial) = facts.initial.get(&key) {
        // The attribute is the bits' own number, without factor and offset.
        signal.initial = signal.raw(initial * signal.factor + signal.offset);
    }
    Ok(signal)
}

/// Connects the multiplexed signals to their switches; one whose switch cannot be used is marked as
/// broken.
fn select(message: &mut Message, dbc: &can_dbc::Message, facts: &Facts<'_>) {
    let is_switch =
        |its: &&can_dbc::Signal| its.multiplexer_indicator == MultiplexIndicator::Multiplexor;
    let only = dbc.signals.iter().find(is_switch).map(|its| &*its.name);
    for its in &dbc.signals {
        let value = match its.multiplexer_indicator {
            MultiplexIndicator::Plain | MultiplexIndicator::Multiplexor => None,
            MultiplexIndicator::MultiplexedSignal(value)
            | MultiplexIndicator::MultiplexorAndMultiplexedSignal(value) => Some((value, value)),
        };
        let extended = facts.selections.get(&(dbc.id.raw(), &*its.name));
        let (switch, ranges) = match (extended, value) {
            (Some((switch, ranges)), _) => (Some(*switch), ranges.clone()),
            (None, Some(value)) => (only, vec![value]),
            (None, None) => continue,
        };
        let Some(index) = message.index(&its.name) else { continue };
        let values = ranges.iter().map(|(min, max)| *min..=*max).collect();
        match switch.and_then(|switch| message.index(switch)) {
            Some(switch) if switch != index => {
                message.signals[index].selection = Some(Selection { switch, values });
            }
            Some(_) | None => {
                let why = "it is multiplexed, and its switch cannot be used";
                message.broken.push((its.name.clone(), why.into()));
                // It keeps its place, because switches are named by index, and no data has it.
                message.signals[index].selection =
                    Some(Selection { switch: index, values: vec![] });
            }
        }
    }
}

fn number(value: &AttributeValue) -> Option<f64> {
    match value {
        AttributeValue::Uint(number) => Some(*number as f64),
        AttributeValue::Int(number) => Some(*number as f64),
        AttributeValue::Double(number) => Some(*number),
        AttributeValue::String(_) => None,
    }
}

fn limit(value: NumericValue) -> f64 {
    match value {
        NumericValue::Uint(number) => number as f64,
        NumericValue::Int(number) => number as f64,
        NumericValue::Double(number) => number,
    }
}

/// Name of the attribute in general use for a signal's initial value.
const INITIAL: &str = "GenSigStartValue";
/// Name of the attribute in general use for a message's period in milliseconds.
const PERIOD: &str = "GenMsgCycleTime";
/// Vector's name for the message of signals that have none.
const INDEPENDENT: &str = "VECTOR__INDEPENDENT_SIG_MSG";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CAR: &str = include_str!("../../../adapters/can/car.dbc");

    fn car() -> Database {
        Database::parse(CAR).unwrap()
    }

    /// Reads a DBC with one message, 100, and these lines.
    fn one(lines: &str) -> Message {
        let text = format!("VERSION \"\"\n\nNS_ :\n\nBS_:\n\nBU_: X\n\nBO_ 100 M: 8 X\n{lines}\n");
        Database::parse(&text).unwrap().messages.remove(0)
    }

    fn names(message: &Message, data: &[u8]) -> Vec<String> {
        message.decode(data).map(|(signal, _)| signal.name.clone()).collect()
    }

    #[test]
    fn a_dbc_is_read_with_what_it_says_elsewhere() {
        let car = car();
        assert_eq!(car.messages().len(), 4);
        let status = car.message("VEHICLE_STATUS").unwrap();
        assert_eq!((status.id, status.size), (Id::Extended(0x18FF_50E5), 8));
        assert_eq!(status.period_ms, Some(50));
        let gear = &status.signals[status.index("GEAR").unwrap()];
        assert_eq!(gear.name_of(3), Some("D"));
        let steering = car.message("STEERING_COMMAND").unwrap();
        assert_eq!(steering.initial(), [0, 0, 100, 0, 0, 0, 0, 0]);
        let refused = car.message("STEERING_COMAND").unwrap_err();
        assert!(refused.contains("did you mean STEERING_COMMAND"), "{refused}");
    }

    #[test]
    fn a_multiplexed_signal_is_there_where_its_switch_selects_it() {
        let car = car();
        let status = car.message("VEHICLE_STATUS").unwrap();
        let has = |page: u8, name: &str| {
            let data = [page, 0, 0, 0, 0, 0, 0, 0];
            names(status, &data).iter().any(|it| it == name)
        };
        assert!(has(0, "CHARGE") && has(0, "VOLTAGE") && !has(0, "MOTOR_TEMPERATURE"));
        assert!(!has(1, "CHARGE") && has(1, "MOTOR_TEMPERATURE") && has(1, "PAGE"));
        assert!(!has(2, "CHARGE") && !has(2, "MOTOR_TEMPERATURE") && has(2, "GEAR"));
    }

    #[test]
    fn switches_below_switches_are_followed() {
        let message = one(" SG_ A M : 0|4@1+ (1,0) [0|0] \"\" X\n \
                            SG_ B m1M : 4|4@1+ (1,0) [0|0] \"\" X\n \
                            SG_ C m3 : 8|8@1+ (1,0) [0|0] \"\" X\n\n\
                           SG_MUL_VAL_ 100 B A 1-1, 5-6;\nSG_MUL_VAL_ 100 C B 3-4;");
        assert_eq!(names(&message, &[0x31]), ["A", "B", "C"]);
        assert_eq!(names(&message, &[0x46]), ["A", "B", "C"]);
        assert_eq!(names(&message, &[0x25]), ["A", "B"]);
        assert_eq!(names(&message, &[0x32]), ["A"]);
    }

    #[test]
    fn signals_that_cannot_be_used_are_kept_with_the_reason() {
        let message = one(" SG_ A : 60|8@1+ (1,0) [0|0] \"\" X\n \
                            SG_ B : 0|8@1+ (0,0) [0|0] \"\" X\n \
                            SG_ C m1 : 0|8@1+ (1,0) [0|0] \"\" X\n \
                            SG_ D : 0|16@1- (1,0) [0|0] \"\" X\n \
                            SG_ E : 0|8@1- (1,0) [0|0] \"\" X\n \
                            SG_ E : 8|8@1- (1,0) [0|0] \"\" X\n\n\
                           SIG_VALTYPE_ 100 D : 1;");
        let why = |name: &str| {
            let found = message.broken.iter().find(|(broken, _)| broken == name);
            found.map_or("", |(_, why)| &**why).to_owned()
        };
        assert_eq!(why("A"), "8 bits from 60 are not in 8 bytes");
        assert!(why("B").contains("factor is 0"), "{}", why("B"));
        assert!(why("C").contains("its switch"), "{}", why("C"));
        assert!(why("D").contains("16 bits"), "{}", why("D"));
        assert!(why("E").contains("two"), "{}", why("E"));
        assert_eq!(names(&message, &[1; 8]), ["E"]);
    }

    #[test]
    fn a_file_in_windows_characters_is_read() {
        let text = CAR.replace("degC", "\u{b0}C");
        let bytes: Vec<u8> = text.chars().map(|c| c as u8).collect();
        let unit = |database: &Database| {
            let message = database.message("VEHICLE_STATUS").unwrap();
            message.signals[message.index("MOTOR_TEMPERATURE").unwrap()].unit.clone()
        };
        assert_eq!(unit(&Database::read(&bytes).unwrap()), "\u{b0}C");
        assert_eq!(unit(&Database::read(text.as_bytes()).unwrap()), "\u{b0}C");
    }

    #[test]
    fn what_is_no_dbc_is_refused_with_its_place() {
        let refused = Database::parse("VERSION \"\"\nBO_ x\n").unwrap_err().to_string();
        assert!(refused.contains("no DBC file") && refused.contains("2:"), "{refused}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_bytes_are_a_dbc_or_refused(
            at: proptest::sample::Index,
            length in 0_usize..40,
            with in proptest::collection::vec(prop_oneof![any::<u8>(), b' '..b'}'], 0..40),
            data in proptest::collection::vec(any::<u8>(), 0..70),
        ) {
            let mut bytes = CAR.as_bytes().to_vec();
            let at = at.index(bytes.len());
            bytes.splice(at..(at + length).min(CAR.len()), with.iter().copied());
            for bytes in [&bytes[..], &with] {
                let Ok(database) = Database::read(bytes) else { continue };
                for message in database.messages() {
                    let raws: Vec<(&str, u64)> =
                        message.decode(&data).map(|(signal, raw)| (signal.name(), raw)).collect();
                    prop_assert_eq!(message.encode(&raws).len(), message.size());
                }
            }
        }
    }
}

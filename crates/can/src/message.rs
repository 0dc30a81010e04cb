use crate::frame::Id;
use crate::signal::Signal;

/// A message of the DBC: the layout of frames with one identifier.
#[derive(Clone, PartialEq, Debug)]
pub struct Message {
    pub(crate) name: String,
    pub(crate) id: Id,
    /// Length in bytes of the message's data.
    pub(crate) size: usize,
    pub(crate) signals: Vec<Signal>,
    /// Names of the signals that cannot be used, each with the reason.
    pub(crate) broken: Vec<(String, String)>,
    /// Period that the DBC names (`GenMsgCycleTime`), in milliseconds; `None` if it names none.
    pub(crate) period_ms: Option<u64>,
}

impl Message {
    /// Returns the name of the message in the DBC.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the identifier of the frames of this message.
    pub fn id(&self) -> Id {
        self.id
    }

    /// Returns the length in bytes of the message's data.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the signals that can be used.
    pub fn signals(&self) -> &[Signal] {
        &self.signals
    }

    /// Returns the signals that this data has, with their bits: of multiplexed ones those that
    /// their switch selects.
    pub fn decode<'a>(&'a self, data: &'a [u8]) -> impl Iterator<Item = (&'a Signal, u64)> {
        let indices = (0..self.signals.len()).filter(|index| self.has(*index, data));
        indices.map(|index| (&self.signals[index], self.signals[index].bits.get(data)))
    }

    /// Returns data in which these signals have these bits, and all others their initial values.
    /// Names that the message lacks are ignored.
    pub fn encode(&self, raws: &[(&str, u64)]) -> Vec<u8> {
        let mut data = self.initial();
        for (name, raw) in raws {
            if let Some(index) = self.index(name) {
                self.signals[index].bits.set(&mut data, *raw);
            }
        }
        data
    }

    /// Returns data in which every signal that is not multiplexed has its initial value; all other
    /// bits are 0.
    pub(crate) fn initial(&self) -> Vec<u8> {
        let mut data = vec![0; self.size];
        for signal in self.signals.iter().filter(|signal| signal.selection.is_none()) {
            signal.bits.set(&mut data, signal.initial);
        }
        data
    }

    /// Returns the index of the signal with this name; `None` if there is none.
    pub(crate) fn index(&self, name: &str) -> Option<usize> {
        self.signals.iter().position(|signal| signal.name == name)
    }

    /// Returns whether this data has the signal: all switches that lead to it select it.
    pub(crate) fn has(&self, index: usize, data: &[u8]) -> bool {
        let mut index = index;
        // After as many switches as there are signals, the DBC leads in a circle.
        for _ in 0..self.signals.len() {
            let Some(selection) = &self.signals[index].selection else { return true };
            let switch = self.signals[selection.switch].bits.get(data);
            if !selection.holds(switch) {
                return false;
            }
            index = selection.switch;
        }
        false
    }
}

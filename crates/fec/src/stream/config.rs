use crate::Error;

/// Maximum number of source packets in a coding window or a decoder's memory.
///
/// The packet count in a repair packet's header has 16 bits.
pub const WINDOW_MAX: usize = u16::MAX as usize;

/// Parameters of an encoder or a decoder; they determine its memory size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Size of every source packet and of every repair packet's payload, in bytes; may be 0.
    pub symbol_bytes: usize,
    /// Encoder: maximum coding window. Decoder: number of packets up to the newest, known or not,
    /// that it remembers. 1..=[`WINDOW_MAX`].
    ///
    /// An encoder's window should hold the packets sent during the feedback delay and during the
    /// longest busy time to survive. A lost packet that leaves the window unrecovered makes an
    /// equation about others useless, so the packets up to the end of a longer busy time are lost
    /// as well. A decoder needs the packets covered by repair packets in flight: those of the
    /// encoder's window and any that may overtake them. Twice the encoder's window is ample.
    pub window_max: usize,
    /// Maximum number of repair packets that a decoder holds until it can use them:
    /// 1..=`window_max`. A further one is refused. An encoder only checks this range: it holds no
    /// repair packets. A decoder's coefficients take `repairs_max * (repairs_max + window_max)`
    /// bytes.
    pub repairs_max: usize,
}

impl Config {
    /// Returns a configuration with `repairs_max` 256, or `window_max` if that is less.
    ///
    /// A decoder needs one repair packet for each packet that is missing at the same time. With 256
    /// missing, elimination of one packet touches up to 330 kB twice; typically it touches some
    /// hundred bytes.
    pub const fn new(symbol_bytes: usize, window_max: usize) -> Config {
        let repairs_max = if window_max < 256 { window_max } else { 256 };
        Config { symbol_bytes, window_max, repairs_max }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let Config { window_max, repairs_max, .. } = *self;
        if window_max == 0 || window_max > WINDOW_MAX {
            return Err(Error::Window { window_max });
        }
        if repairs_max == 0 || repairs_max > window_max {
            return Err(Error::Repairs { repairs_max, window_max });
        }
        Ok(())
    }
}

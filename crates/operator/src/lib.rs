//! Downlink, input, the console's bridge and the recorder

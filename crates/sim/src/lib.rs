//! Virtual time: links, loss, delay, traces and clocks from a seed

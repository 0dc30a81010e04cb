//! The sans-I/O multi-link session.
#![forbid(unsafe_code)]

pub mod crypto;

use tautline_transport::rate::Cause;

/// Returns the name of a cause of a granted rate, by its number in a snapshot; `unknown` for a
/// number that only later builds have.
pub(super) fn cause_name(number: u8) -> &'static str {
    Cause::from_number(number).map_or("unknown", Cause::name)
}

/// Formats `unix_nanos` nanoseconds of Unix time as date and time of day in UTC: `2019-07-16
/// 05:25:12.040Z`.
pub fn utc(unix_nanos: u64) -> String {
    let (days, rest) = (unix_nanos / DAY, unix_nanos % DAY);
    let (year, month, day) = date(days);
    let (hour, minute) = (rest / 3_600_000_000_000, rest / 60_000_000_000 % 60);
    let (second, milli) = (rest / 1_000_000_000 % 60, rest / 1_000_000 % 1_000);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Returns the date `days` days after 1 January 1970.
fn date(days: u64) -> (u64, u64, u64) {
    // A year that begins on 1 March has its leap day last; 400 years have 146,097 days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}

/// Nanoseconds of a day.
const DAY: u64 = 86_400_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_dates_are_formatted_as_in_the_calendar() {
        assert_eq!(utc(0), "1970-01-01 00:00:00.000Z");
        assert_eq!(utc(1_563_254_712_040_000_000), "2019-07-16 05:25:12.040Z");
        assert_eq!(utc(951_782_399_999_000_000), "2000-02-28 23:59:59.999Z");
        assert_eq!(utc(951_782_400_000_000_000), "2000-02-29 00:00:00.000Z");
        assert_eq!(utc(1_709_251_200_000_000_000), "2024-03-01 00:00:00.000Z");
        assert_eq!(utc(u64::MAX), "2554-07-21 23:34:33.709Z");
    }
}

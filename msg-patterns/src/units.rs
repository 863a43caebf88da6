//! Sizes and times as people write them, in settings and on command lines.

use std::time::Duration;

const SIZES: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("kb", 1000),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("mb", 1_000_000),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("gb", 1_000_000_000),
    ("t", 1 << 40),
    ("tib", 1 << 40),
    ("tb", 1_000_000_000_000),
];

const TIMES_NS: &[(&str, u64)] = &[
    ("", 1_000_000_000),
    ("ns", 1),
    ("us", 1000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Units that sizes are printed in, the largest first.
const PRINTED_SIZES: &[&str] = &["TiB", "GiB", "MiB", "KiB"];
/// Units that times are printed in, the largest first.
const PRINTED_TIMES: &[&str] = &["s", "ms", "us"];

/// A size in bytes: `4096`, `64KiB`, `1G` (binary), `1GB` (decimal), `1.5MiB`. `None` for what is no
/// size, or more than 64 bits hold.
///
/// ```
/// use msg_patterns::units::parse_size;
///
/// assert_eq!((parse_size("64KiB"), parse_size("64 pigeons")), (Some(65536), None));
/// ```
pub fn parse_size(text: &str) -> Option<u64> {
    u64::try_from(scaled(text, SIZES)?).ok()
}

/// A time: `5` and `5s` are seconds, `200ms`, `50us`, `2m`, `1h`. `None` for what is no time, or more
/// than 64 bits of nanoseconds hold, which is 584 years.
///
/// ```
/// use std::time::Duration;
/// use msg_patterns::units::parse_time;
///
/// assert_eq!(parse_time("200ms"), Some(Duration::from_millis(200)));
/// ```
pub fn parse_time(text: &str) -> Option<Duration> {
    u64::try_from(scaled(text, TIMES_NS)?).ok().map(Duration::from_nanos)
}

/// A size as [`parse_size`] reads it, in the largest unit in which it is a whole number.
pub fn print_size(bytes: u64) -> String {
    print(bytes.into(), PRINTED_SIZES, SIZES, "")
}

/// A time as [`parse_time`] reads it unless it is longer than 584 years, in seconds or the largest unit below in which it is a whole
/// number.
pub fn print_time(time: Duration) -> String {
    print(time.as_nanos(), PRINTED_TIMES, TIMES_NS, "ns")
}

fn print(value: u128, printed: &[&str], units: &[(&str, u64)], smallest: &str) -> String {
    let whole = printed.iter().find_map(|unit| {
        let factor = u128::from(factor(unit, units)?);
        let fits = value.is_multiple_of(factor) && (value > 0 || *unit == "s");
        fits.then(|| format!("{}{unit}", value / factor))
    });
    whole.unwrap_or_else(|| format!("{value}{smallest}"))
}

fn factor(unit: &str, units: &[(&str, u64)]) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
}

fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u128> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = factor(unit.trim(), units)?;
    match number.parse::<u128>() {
        Ok(whole) => whole.checked_mul(factor.into()),
        Err(_) => fraction(number, factor),
    }
}

fn fraction(number: &str, factor: u64) -> Option<u128> {
    let value = number.parse::<f64>().ok()? * factor as f64;
    (value.is_finite() && value < u64::MAX as f64).then_some(value as u128)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_have_binary_and_decimal_units() {
        let cases = [
            ("0", 0),
            ("4096", 4096),
            ("64KiB", 65536),
            ("64 kib", 65536),
            ("1G", 1 << 30),
            ("1GB", 1_000_000_000),
            ("1.5MiB", 3 << 19),
            ("16t", 16 << 40),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
    }

    #[test]
    fn times_are_seconds_unless_said_otherwise() {
        let cases = [
            ("5", 5_000_000),
            ("5s", 5_000_000),
            ("200ms", 200_000),
            ("0.5s", 500_000),
            ("7us", 7),
        ];
        for (text, micros) in cases {
            assert_eq!(parse_time(text), Some(Duration::from_micros(micros)), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        let far_too_much = "9".repeat(40);
        for text in ["", "x", "-1", "1x", "1.2.3", "+1", ".", &far_too_much] {
            assert_eq!(parse_size(text), None, "{text}");
            assert_eq!(parse_time(text), None, "{text}");
        }
        assert_eq!(parse_size("20000000T"), None);
    }

    #[test]
    fn the_largest_unit_that_fits_is_printed() {
        let sizes = [0, 1000, 1024, 64 << 20, 3 << 30].map(print_size);
        assert_eq!(sizes, ["0", "1000", "1KiB", "64MiB", "3GiB"]);
        let times = [0, 5, 1_500_000, 1_000_000, 2_000_000_000, 90_000_000_000];
        let times = times.map(|nanos| print_time(Duration::from_nanos(nanos)));
        assert_eq!(times, ["0s", "5ns", "1500us", "1ms", "2s", "90s"]);
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(bytes in any::<u64>(), nanos in any::<u64>(), secs in any::<u32>()) {
            prop_assert_eq!(parse_size(&print_size(bytes)), Some(bytes));
            for time in [Duration::from_nanos(nanos), Duration::from_secs(secs.into())] {
                prop_assert_eq!(parse_time(&print_time(time)), Some(time));
            }
        }

        #[test]
        fn no_text_panics(text in "[0-9.]{0,60}[a-zA-Z]{0,3}|\\PC{0,12}") {
            let _ = (parse_size(&text), parse_time(&text));
        }
    }
}

//! Sizes for people.

use std::fmt;

/// A number of bytes, shown in the largest binary unit that leaves a short number.
pub(crate) struct Size(pub(crate) u64);

const UNITS: &[&str] = &["B", "KiB", "MiB", "GiB", "TiB"];

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut number = self.0 as f64;
        let mut unit = 0;
        while number >= 1024.0 && unit + 1 < UNITS.len() {
            number /= 1024.0;
            unit += 1;
        }
        let text = format!("{number:.1}");
        write!(f, "{} {}", text.trim_end_matches(".0"), UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_unit_that_fits() {
        let cases = [(0, "0 B"), (65536, "64 KiB"), (8 << 20, "8 MiB"), (3 << 29, "1.5 GiB")];
        for (bytes, text) in cases {
            assert_eq!(Size(bytes).to_string(), text);
        }
        assert_eq!(Size(u64::MAX).to_string(), "16777216 TiB");
    }
}

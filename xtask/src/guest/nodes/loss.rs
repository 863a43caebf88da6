//! Shares of packets to lose.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

/// A share of packets that a link loses.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Loss {
    percent: f64,
}

impl Loss {
    /// The command that makes the link of a guest lose that share of what it sends.
    pub(super) fn command(self) -> String {
        format!("tc qdisc replace dev roce0 root netem loss {self} limit 10000")
    }

    /// The greater of two.
    pub(super) fn at_least(self, other: Self) -> Self {
        if self < other { other } else { self }
    }
}

impl FromStr for Loss {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').and_then(|number| number.parse().ok());
        let percent = number.filter(|percent| (0.0..=100.0).contains(percent));
        percent.map(|percent| Self { percent }).ok_or_else(|| {
            format!("`{text}` is no share of packets: write it like 1% or 0.1%, up to 100%")
        })
    }
}

impl TryFrom<String> for Loss {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_written_as_percent() {
        for (text, shown) in [("1%", "1%"), ("0.1%", "0.1%"), ("0%", "0%"), ("5.0%", "5%")] {
            assert_eq!(text.parse::<Loss>().unwrap().to_string(), shown);
        }
        for wrong in ["1", "%", "-1%", "101%", "x%", "nan%", "1 %; reboot"] {
            let error = wrong.parse::<Loss>().unwrap_err();
            assert!(error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn the_greater_loss_is_kept() {
        let [none, one] = ["0%", "1%"].map(|text| text.parse::<Loss>().unwrap());
        assert_eq!(none.at_least(one), one);
        assert_eq!(one.at_least(none), one);
        assert!(one.command().ends_with("netem loss 1% limit 10000"));
    }
}

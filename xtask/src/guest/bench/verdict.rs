//! Whether the targets are met.

use super::Turn;
use super::contender::Contender;
use crate::report::Outcome;

/// The median of the ratios to `ib_send_lat`, each of one round.
pub(super) fn ratio(turns: &[Turn], contender: Contender) -> f64 {
    median(turns.iter().map(|turn| turn[contender as usize] / turn[Contender::SendLat as usize]))
}

/// The middle one; between two, the larger.
pub(super) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Whether a ratio meets its target, in words.
pub(super) fn word(ratio: f64, target: f64) -> &'static str {
    if ratio <= target { "met" } else { "not met" }
}

/// All ratios with their targets, in one line.
pub(super) fn of(turns: &[Turn]) -> Outcome {
    let mut missed = false;
    let mut parts = Vec::new();
    for contender in Contender::ALL {
        let Some(target) = contender.target() else { continue };
        let ratio = ratio(turns, contender);
        missed |= word(ratio, target) != "met";
        let name = contender.name();
        parts.push(format!("{name} {ratio:.2} of {target}: {}", word(ratio, target)));
    }
    let line = format!("times ib_send_lat's round trip: {}", parts.join(", "));
    if missed { Err(line) } else { Ok(line) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_round_decides_nothing() {
        let turns = [[10.0, 12.0, 19.0], [10.0, 90.0, 19.0], [20.0, 25.0, 38.0]];
        assert_eq!(ratio(&turns, Contender::Domain), 1.25);
        assert!(of(&turns).is_ok());
    }

    #[test]
    fn one_missed_target_is_a_failure() {
        let line = of(&[[10.0, 13.1, 19.0]]).unwrap_err();
        assert!(line.contains("Domain 1.31 of 1.3: not met, REQ/REP 1.90 of 2: met"), "{line}");
        assert!(of(&[]).is_err(), "nothing measured is nothing met");
    }
}

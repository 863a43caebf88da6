//! The text format of Prometheus, version 0.0.4: lines of `name{label="value",…} value [time]`.

use std::collections::BTreeMap;

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) value: f64,
}

/// All values in `text`.
///
/// # Errors
/// The number of the first line that is none.
pub(super) fn parse(text: &str) -> Result<Vec<Sample>, String> {
    let lines = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim()));
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| {
            sample(line).ok_or_else(|| format!("line {number} is no text of Prometheus"))
        })
        .collect()
}

fn sample(line: &str) -> Option<Sample> {
    let end = line.find(['{', ' ', '\t'])?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (BTreeMap::new(), rest),
    };
    let value = rest.split_whitespace().next()?.parse().ok()?;
    (!name.is_empty()).then(|| Sample { name: name.into(), labels, value })
}

/// Labels up to the closing brace, and what stands behind it.
fn labels(mut text: &str) -> Option<(BTreeMap<String, String>, &str)> {
    let mut labels = BTreeMap::new();
    loop {
        text = text.trim_start();
        if let Some(rest) = text.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, rest) = text.split_once('=')?;
        let (value, rest) = quoted(rest.trim_start())?;
        labels.insert(name.trim().to_owned(), value);
        text = rest.trim_start();
        text = text.strip_prefix(',').unwrap_or(text);
    }
}

/// A value in quotes, in which `\\`, `\"` and `\n` stand for one character, and what stands behind.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.strip_prefix('"')?.chars();
    loop {
        match chars.next()? {
            '"' => return Some((value, chars.as_str())),
            '\\' => match chars.next()? {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_labels_and_values_are_found() {
        let text = "# HELP a_total what\n# TYPE a_total counter\na_total{x=\"1\",y=\"a \\\"b\\\\ }\"} 5\n\nb 2.5 1700000000\nc{} NaN\n";
        let found = parse(text).unwrap();
        assert_eq!(found[0].labels["y"], "a \"b\\ }");
        let brief: Vec<_> = found.iter().map(|s| (s.name.as_str(), s.labels.len())).collect();
        assert_eq!(brief, [("a_total", 2), ("b", 0), ("c", 0)]);
        assert_eq!((found[0].value, found[1].value, found[2].value.is_nan()), (5.0, 2.5, true));
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        for line in ["<html>", "a", "a{", "a{x=1} 2", "a{x=\"1} 2", "a{x=\"1\"} five", "{} 1"] {
            let text = format!("# fine\nb 1\n{line}\n");
            assert_eq!(parse(&text).unwrap_err(), "line 3 is no text of Prometheus", "{line}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value in any::<f64>().prop_filter("a number", |v| !v.is_nan()),
                                   label in "[^\\n]{0,20}") {
            let escaped = label.replace('\\', "\\\\").replace('"', "\\\"");
            let found = parse(&format!("a{{x=\"{escaped}\"}} {value}")).unwrap();
            prop_assert_eq!((found[0].value, &found[0].labels["x"]), (value, &label));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,60}|[a-c{}=\",\\\\ 0-9\\n]{0,60}") {
            let _ = parse(&text);
        }
    }
}

//! Command lines in pages: what a reader would copy.

/// A command line and whether it stands alone: in a block of code it is to be typed as it is, in a
/// sentence it may be the beginning of one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Its words, without quotes.
    pub(crate) words: Vec<String>,
    /// Whether it stands in a block.
    pub(crate) is_whole: bool,
}

/// All lines of a page of Markdown that begin with these words.
pub(crate) fn lines(page: &str, begin: &[&str]) -> Vec<Line> {
    let mut found = Vec::new();
    let mut block = None;
    for line in page.lines() {
        match line.trim_start().strip_prefix("```") {
            Some(language) => {
                block = if block.is_none() { Some(["sh", ""].contains(&language)) } else { None }
            }
            None if block == Some(true) => {
                found.extend(commands(line).map(|words| Line { words, is_whole: true }));
            }
            None if block.is_none() => {
                let spans = line.split('`').skip(1).step_by(2);
                found.extend(spans.map(|span| Line { words: words(span), is_whole: false }));
            }
            None => {}
        }
    }
    found
        .retain(|line| line.words.iter().zip(begin).filter(|(a, b)| a == b).count() == begin.len());
    found
}

/// The commands of a line, which may have a prompt, pipes and a comment.
fn commands(line: &str) -> impl Iterator<Item = Vec<String>> {
    let line = line.split_once("$ ").map_or(line, |(_, typed)| typed);
    let mut all = vec![Vec::new()];
    for word in words(line) {
        match word.as_str() {
            "#" => break,
            "|" | "&&" | ";" => all.push(Vec::new()),
            _ => all.last_mut().expect("there is one").push(word),
        }
    }
    all.into_iter()
}

fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in text.chars() {
        match (c, quote) {
            (' ', None) => words.push(String::new()),
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (c, _) => words.last_mut().expect("there is one").push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(page: &str) -> Vec<String> {
        lines(page, &["fabric"]).iter().map(|line| line.words.join("+")).collect()
    }

    #[test]
    fn commands_are_found_behind_prompts_and_pipes_and_without_comments() {
        let page = "```sh\necho a | fabric req b   # why\nhost$ fabric top 'c d'\nls\n```\n";
        assert_eq!(found(page), ["fabric+req+b", "fabric+top+c d"]);
    }

    #[test]
    fn commands_in_sentences_are_found_and_other_languages_are_left_out() {
        let page = "Try `fabric top`, not `x`.\n```rust\nfabric no\n```\n";
        assert_eq!(found(page), ["fabric+top"]);
    }
}

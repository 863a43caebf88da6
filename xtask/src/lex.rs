//! Separates the code of a Rust file from its comments and the contents of its strings, so that
//! textual checks neither trip over prose nor miss code.

/// One line, taken apart. Columns are kept: what does not belong is replaced by spaces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Line {
    /// Code; strings and character literals keep only their quotes.
    pub(crate) code: String,
    /// Comments, with their slashes and stars.
    pub(crate) comment: String,
}

/// Takes a whole file apart. Never fails: text that is no Rust gives odd lines, not an error.
pub(crate) fn lex(text: &str) -> Vec<Line> {
    let mut lexer = Lexer::new(text);
    while lexer.at < lexer.chars.len() {
        lexer.step();
    }
    lexer.finish()
}

#[derive(Clone, Copy)]
enum State {
    Code,
    LineComment,
    BlockComment { depth: usize },
    Str,
    RawStr { hashes: usize },
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    state: State,
    lines: Vec<Line>,
    line: Line,
}

impl Lexer {
    fn new(text: &str) -> Self {
        let chars = text.chars().collect();
        Self { chars, at: 0, state: State::Code, lines: Vec::new(), line: Line::default() }
    }

    fn finish(mut self) -> Vec<Line> {
        if !self.line.code.is_empty() {
            self.end_line();
        }
        self.lines
    }

    fn step(&mut self) {
        if self.peek(0) == Some('\n') {
            self.newline();
            return;
        }
        match self.state {
            State::Code => self.code(),
            State::LineComment => self.take_comment(1),
            State::BlockComment { depth } => self.block_comment(depth),
            State::Str => self.string(),
            State::RawStr { hashes } => self.raw_string(hashes),
        }
    }

    fn newline(&mut self) {
        if matches!(self.state, State::LineComment) {
            self.state = State::Code;
        }
        self.at += 1;
        self.end_line();
    }

    fn code(&mut self) {
        match (self.peek(0), self.peek(1)) {
            (Some('/'), Some('/')) => self.begin(State::LineComment),
            (Some('/'), Some('*')) => {
                self.take_comment(2);
                self.state = State::BlockComment { depth: 1 };
            }
            (Some('"'), _) => {
                self.take_code(1);
                self.state = State::Str;
            }
            (Some('\''), _) => self.quote(),
            (Some('r'), _) if !self.after_ident() => self.raw_start(),
            _ => self.take_code(1),
        }
    }

    fn begin(&mut self, state: State) {
        self.take_comment(2);
        self.state = state;
    }

    /// A `'` starts a character or a lifetime.
    fn quote(&mut self) {
        let len = self.char_literal_len();
        self.take_code(1);
        if let Some(len) = len {
            self.blank(len);
            self.take_code(1);
        }
    }

    /// How many characters stand between the quotes, if this is a literal.
    fn char_literal_len(&self) -> Option<usize> {
        if self.peek(1) != Some('\\') {
            return (self.peek(2) == Some('\'')).then_some(1);
        }
        (3..14).find(|&ahead| self.peek(ahead) == Some('\'')).map(|ahead| ahead - 1)
    }

    /// An `r` starts a raw string or a name.
    fn raw_start(&mut self) {
        let hashes = (1..).take_while(|&ahead| self.peek(ahead) == Some('#')).count();
        if self.peek(1 + hashes) == Some('"') {
            self.take_code(2 + hashes);
            self.state = State::RawStr { hashes };
        } else {
            self.take_code(1);
        }
    }

    fn string(&mut self) {
        match self.peek(0) {
            // An escaped line break still ends the line.
            Some('\\') if self.peek(1) != Some('\n') => self.blank(2),
            Some('"') => {
                self.take_code(1);
                self.state = State::Code;
            }
            _ => self.blank(1),
        }
    }

    fn raw_string(&mut self, hashes: usize) {
        let closed = (1..=hashes).all(|ahead| self.peek(ahead) == Some('#'));
        if self.peek(0) == Some('"') && closed {
            self.take_code(1 + hashes);
            self.state = State::Code;
        } else {
            self.blank(1);
        }
    }

    fn block_comment(&mut self, depth: usize) {
        match (self.peek(0), self.peek(1)) {
            (Some('/'), Some('*')) => {
                self.take_comment(2);
                self.state = State::BlockComment { depth: depth + 1 };
            }
            (Some('*'), Some('/')) => {
                self.take_comment(2);
                self.state =
                    if depth == 1 { State::Code } else { State::BlockComment { depth: depth - 1 } };
            }
            _ => self.take_comment(1),
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    /// Whether the previous character belongs to a name, other than the prefix of a byte or C string.
    fn after_ident(&self) -> bool {
        let before = |back: usize| self.at.checked_sub(back).and_then(|at| self.chars.get(at));
        let ident = |c: Option<&char>| c.is_some_and(|c| c.is_alphanumeric() || *c == '_');
        let prefix = matches!(before(1), Some('b' | 'c')) && !ident(before(2));
        ident(before(1)) && !prefix
    }

    fn take_code(&mut self, count: usize) {
        self.take(count, |line, c| {
            line.code.push(c);
            line.comment.push(' ');
        });
    }

    fn take_comment(&mut self, count: usize) {
        self.take(count, |line, c| {
            line.code.push(' ');
            line.comment.push(c);
        });
    }

    fn blank(&mut self, count: usize) {
        self.take(count, |line, _| {
            line.code.push(' ');
            line.comment.push(' ');
        });
    }

    fn take(&mut self, count: usize, put: fn(&mut Line, char)) {
        for _ in 0..count {
            if let Some(c) = self.peek(0) {
                put(&mut self.line, c);
                self.at += 1;
            }
        }
    }

    fn end_line(&mut self) {
        self.lines.push(std::mem::take(&mut self.line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Vec<String> {
        lex(text).into_iter().map(|line| line.code.trim_end().to_owned()).collect()
    }

    fn comments(text: &str) -> Vec<String> {
        lex(text).into_iter().map(|line| line.comment.trim().to_owned()).collect()
    }

    #[test]
    fn comments_and_strings_are_not_code() {
        assert_eq!(code("let a = \"unsafe\"; // unsafe\n"), ["let a = \"      \";"]);
        assert_eq!(comments("let a = \"no\"; // yes\n"), ["// yes"]);
    }

    #[test]
    fn an_escaped_quote_does_not_end_a_string() {
        assert_eq!(code(r#"f("a\"b", c)"#), [r#"f("    ", c)"#]);
    }

    #[test]
    fn a_raw_string_ends_at_its_own_hashes() {
        assert_eq!(code("f(r#\"a\"b\"#, br\"c\", r#type)"), ["f(r#\"   \"#, br\" \", r#type)"]);
    }

    #[test]
    fn block_comments_nest_and_span_lines() {
        assert_eq!(code("a /* b /* c */\nd */ e"), ["a", "     e"]);
        assert_eq!(comments("a /* b\nc */ d"), ["/* b", "c */"]);
    }

    #[test]
    fn a_lifetime_opens_no_character() {
        assert_eq!(code("fn f<'a>(x: &'a str, c: char) { c == '\"' }").len(), 1);
        assert_eq!(code("f::<'a>('{', '\\'', b'\\u{7d}')"), ["f::<'a>(' ', '  ', b'      ')"]);
    }

    #[test]
    fn a_string_over_several_lines_keeps_their_number() {
        assert_eq!(code("let a = \"x\\\n y\nz\";\nb"), ["let a = \"", "", " \";", "b"]);
    }
}

//! Words, quoted text, numbers and marks of the text form.

use super::TextError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Position in the text, in bytes.
pub(super) type At = usize;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'t> {
    /// An identifier or keyword.
    Word(&'t str),
    /// `"…"`.
    Quoted(String),
    /// `base64"…"`.
    Bytes(Vec<u8>),
    /// Digits with sign, point and exponent, or `0x…`, as they stand.
    Number(&'t str),
    Mark(char),
    /// `=>`.
    Arrow,
    End,
}

impl Token<'_> {
    /// For messages: what was found.
    pub fn describe(&self) -> String {
        match self {
            Token::Word(word) => format!("'{word}'"),
            Token::Quoted(text) => format!("\"{}\"", text.chars().take(40).collect::<String>()),
            Token::Bytes(_) => "base64 data".to_owned(),
            Token::Number(number) => format!("'{number}'"),
            Token::Mark(mark) => format!("'{mark}'"),
            Token::Arrow => "'=>'".to_owned(),
            Token::End => "the end of the text".to_owned(),
        }
    }
}

pub(super) struct Lexer<'t> {
    text: &'t str,
    at: At,
}

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str) -> Lexer<'t> {
        Lexer { text, at: 0 }
    }

    pub fn text(&self) -> &'t str {
        self.text
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c| !keep(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// The next token and where it begins.
    pub fn next(&mut self) -> Result<(At, Token<'t>), TextError> {
        loop {
            self.take_while(char::is_whitespace);
            if !self.rest().starts_with('#') {
                break;
            }
            self.take_while(|c| c != '\n');
        }
        let at = self.at;
        let Some(first) = self.rest().chars().next() else { return Ok((at, Token::End)) };
        let token = match first {
            'a'..='z' | 'A'..='Z' | '_' => {
                let word = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
                if word == "base64" && self.rest().starts_with('"') {
                    self.base64(at)?
                } else {
                    Token::Word(word)
                }
            }
            '"' => Token::Quoted(self.quoted()?),
            '0'..='9' => self.number(at),
            '-' | '+' if self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) => self.number(at),
            '=' if self.rest().starts_with("=>") => {
                self.at += 2;
                Token::Arrow
            }
            '%' => {
                return Err(error_at(
                    self.text,
                    at,
                    "'%' begins a pattern variable, which only rules can have",
                ));
            }
            mark if mark.is_ascii_punctuation() => {
                self.at += 1;
                Token::Mark(mark)
            }
            other => {
                let what = format!("unexpected {other:?}; names with such characters stand in quotes");
                return Err(error_at(self.text, at, what));
            }
        };
        Ok((at, token))
    }

    fn number(&mut self, from: At) -> Token<'t> {
        self.at += 1;
        let digits = self.take_while(|c| c.is_ascii_digit());
        if digits.is_empty() && self.rest().starts_with('x') && self.text.get(from..self.at) == Some("0") {
            self.at += 1;
            self.take_while(|c| c.is_ascii_hexdigit());
        } else {
            if self.rest().starts_with('.') {
                self.at += 1;
                self.take_while(|c| c.is_ascii_digit());
            }
            let exponent = self.rest().strip_prefix(['e', 'E']);
            let exponent = exponent.map(|e| (e, e.strip_prefix(['+', '-']).unwrap_or(e)));
            if let Some((signed, digits)) = exponent
                && digits.starts_with(|c: char| c.is_ascii_digit())
            {
                self.at += 1 + (signed.len() - digits.len());
                self.take_while(|c| c.is_ascii_digit());
            }
        }
        Token::Number(self.text.get(from..self.at).unwrap_or_default())
    }

    fn base64(&mut self, from: At) -> Result<Token<'t>, TextError> {
        self.at += 1;
        let data = self.take_while(|c| c != '"');
        if self.rest().is_empty() {
            return Err(error_at(self.text, from, "base64 data without a closing quote"));
        }
        self.at += 1;
        let wrong = |e| error_at(self.text, from, format!("this is not base64: {e}"));
        STANDARD.decode(data.trim()).map(Token::Bytes).map_err(wrong)
    }

    fn quoted(&mut self) -> Result<String, TextError> {
        let from = self.at;
        self.at += 1;
        let mut out = String::new();
        loop {
            out.push_str(self.take_while(|c| c != '"' && c != '\\'));
            if self.rest().starts_with('"') {
                self.at += 1;
                return Ok(out);
            }
            let escape = self.at;
            let mut follows = self.rest().chars().skip(1);
            let plain = match follows.next() {
                None => return Err(error_at(self.text, from, "quoted text without a closing quote")),
                Some('u') => {
                    out.push(self.code_point(escape)?);
                    continue;
                }
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some(c @ ('"' | '\\')) => c,
                Some(c) => {
                    let what = format!("'\\{c}' means nothing; there are \\\" \\\\ \\n \\r \\t \\u{{hex}}");
                    return Err(error_at(self.text, escape, what));
                }
            };
            out.push(plain);
            self.at += 2;
        }
    }

    /// `\u{hex}`.
    fn code_point(&mut self, escape: At) -> Result<char, TextError> {
        let inner = self.rest().strip_prefix("\\u{").and_then(|rest| rest.split_once('}'));
        let code = inner.and_then(|(hex, _)| Some((hex.len(), u32::from_str_radix(hex, 16).ok()?)));
        match code.and_then(|(length, code)| Some((length, char::from_u32(code)?))) {
            Some((length, c)) => {
                self.at += length + 4;
                Ok(c)
            }
            None => Err(error_at(self.text, escape, "expected \\u{hex} with the number of a character")),
        }
    }
}

/// An error with line and column.
pub(super) fn error_at(text: &str, at: At, what: impl Into<String>) -> TextError {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    TextError { line, column, what: what.into() }
}

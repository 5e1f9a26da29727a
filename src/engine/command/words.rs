//! Words of a command as a shell splits them, without anything else that a shell does.

/// Words of a line: blanks part them; single quotes keep all, double quotes all but `\"` and `\\`; a backslash outside
/// of quotes keeps the next character (not on Windows, where it stands in paths). `Err` says which quote is not closed.
pub fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next() {
                        Some('\'') => break,
                        Some(inner) => word.push(inner),
                        None => return Err("a single quote is not closed".into()),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next() {
                        Some('"') => break,
                        Some('\\') if matches!(letters.peek(), Some('"' | '\\')) => {
                            word.extend(letters.next());
                        }
                        Some(inner) => word.push(inner),
                        None => return Err("a double quote is not closed".into()),
                    }
                }
            }
            '\\' if !cfg!(windows) => match letters.next() {
                Some(kept) => word.get_or_insert_default().push(kept),
                None => return Err("it ends in a backslash".into()),
            },
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(all(test, not(windows)))]
mod tests {
    use super::split;

    #[test]
    fn words_are_split_as_a_shell_does() {
        assert_eq!(split(r#"a  'b c' "d \" e"f g\ h '' "#).unwrap(), ["a", "b c", "d \" ef", "g h", ""]);
        assert!(split("a 'b").is_err() && split("\"").is_err() && split("a\\").is_err());
    }
}

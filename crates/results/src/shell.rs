//! Words of command lines that can be pasted into a shell.

/// A shell word (POSIX, 2.2.2): quoted if the shell would interpret any of its characters.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,@%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_words_survive_shell_parsing() {
        assert_eq!(shell_word("http://localhost:15000/stats"), "http://localhost:15000/stats");
        assert_eq!(shell_word("a?b&c"), "'a?b&c'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }
}

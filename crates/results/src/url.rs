//! URLs as results, messages and files show them: without credentials.

/// The URL without user and password.
///
/// Understands URLs without a scheme (`user:password@host/`) and with a weight in front (`3=http://…`). A password with an
/// unescaped `/`, `?` or `#` ends at the last `@`, so that no part of it is shown.
#[must_use]
pub fn without_credentials(url: &str) -> String {
    let (scheme, rest) = split_scheme(url);
    format!("{scheme}{}", split_credentials(rest).1)
}

/// Splits a URL behind its `://`; the first part is empty if there is none.
#[must_use]
pub fn split_scheme(url: &str) -> (&str, &str) {
    let end = url.find("://").map(|index| index + 3);
    // `://` behind a path or query belongs to another URL.
    let end = end.filter(|end| !url[..end - 3].contains(['/', '?', '#', '@', ':']));
    url.split_at(end.unwrap_or(0))
}

/// Splits what follows a scheme into credentials, if there are any, and the rest without `@`.
#[must_use]
pub fn split_credentials(rest: &str) -> (Option<&str>, &str) {
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let end = match authority.rfind('@') {
        Some(end) => Some(end),
        // `user:pass/word@host`: a port has digits only, unless it is a range of numbers.
        None => match authority.rsplit_once(':') {
            Some((_, port)) if !is_port(port) && !authority.ends_with(']') && !port.contains('{') => {
                rest.rfind('@')
            }
            _ => None,
        },
    };
    match end {
        Some(end) => (Some(&rest[..end]), &rest[end + 1..]),
        None => (None, rest),
    }
}

/// Decodes percent-encoding such as `%41`. A `%` that is not followed by two hex digits is kept.
#[must_use]
pub fn percent_decoded(text: &str) -> Vec<u8> {
    let mut decoded = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let coded = (*first == b'%').then(|| others.get(..2)).flatten();
        let byte = coded.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        decoded.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &others[2..] } else { others };
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_not_shown() {
        for (url, shown) in [
            ("http://a/b@c?d=e@f", "http://a/b@c?d=e@f"),
            ("http://tom:secret@a:81/b", "http://a:81/b"),
            ("http://tom@a", "http://a"),
            ("http://tom:secr@et@a/", "http://a/"),
            ("http://tom:sec/r?e#t@a/", "http://a/"),
            ("3=https://tom:secret@[::1]:9/", "3=https://[::1]:9/"),
            ("tom:secret@a/b", "a/b"),
            ("http://a-{1..3}:{1..2}/x@y", "http://a-{1..3}:{1..2}/x@y"),
            ("http://[::1]/x@y", "http://[::1]/x@y"),
            ("a/?u=http://tom:secret@b/", "a/?u=http://tom:secret@b/"),
            ("", ""),
        ] {
            assert_eq!(without_credentials(url), shown, "{url}");
        }
    }

    #[test]
    fn percent_encoding_is_decoded_and_other_percent_signs_are_kept() {
        assert_eq!(percent_decoded("a%40b%2F%c3%a4"), "a@b/ä".as_bytes());
        assert_eq!(percent_decoded("50%zz%4"), b"50%zz%4");
    }
}

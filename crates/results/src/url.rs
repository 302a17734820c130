//! URLs as results, messages and files show them: without credentials.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The URL without user and password.
///
/// Understands URLs without a scheme (`user:password@host/`) and with a weight in front (`3=http://…`). A password with an
/// unescaped `/`, `?` or `#` ends at the last `@`, so that no part of it is shown.
#[must_use]
pub fn without_credentials(url: &str) -> String {
    let (scheme, rest) = split_scheme(url);
    format!("{scheme}{}", split_credentials(rest).1)
}

/// The text without the credentials of the addresses in it. An address ends at a space or a double quote.
///
/// Finds addresses with a mistyped scheme (`http:/user:password@host`, `http//…`) and without one (`user:password@host`).
/// The digest of an image (`name:tag@sha256:…`) is not a host. This is for messages,
/// which may repeat a value that is not a URL: it hides too much rather than too little; [`without_credentials`] is for a URL.
#[must_use]
pub fn hide_credentials(text: &str) -> Cow<'_, str> {
    if !text.contains('@') {
        return Cow::Borrowed(text);
    }
    let ends_word = |letter: char| letter.is_whitespace() || letter.is_control() || letter == '"';
    Cow::Owned(text.split_inclusive(ends_word).fold(String::new(), |shown, word| shown + &shown_word(word)))
}

/// A word without the credentials in it. It may hold several URLs, as a list without spaces does.
fn shown_word(word: &str) -> String {
    let mut rest = word;
    let mut shown = String::new();
    let mut is_behind_scheme = false;
    while let Some(start) = authority_start(rest) {
        let (before, authority) = rest.split_at(start);
        shown += &if is_behind_scheme { Cow::Borrowed(before) } else { shown_without_scheme(before) };
        is_behind_scheme = true;
        let host = split_credentials(authority).1;
        rest = if is_digest(host) { authority } else { host };
    }
    shown + &if is_behind_scheme { Cow::Borrowed(rest) } else { shown_without_scheme(rest) }
}

/// Start of the authority of a URL in a word: behind `//`, or behind the `:/` of a mistyped scheme.
fn authority_start(word: &str) -> Option<usize> {
    let slash = word
        .match_indices('/')
        .map(|(index, _)| index)
        .find(|slash| word[..*slash].ends_with(':') || word[slash + 1..].starts_with('/'))?;
    Some(word.len() - word[slash..].trim_start_matches('/').len())
}

/// `user:password@host` as `host`, with the quotes and colours in front of it.
fn shown_without_scheme(text: &str) -> Cow<'_, str> {
    let is_style = |codes: &str| codes.bytes().all(|byte| byte.is_ascii_digit() || byte == b';');
    let style =
        text.strip_prefix('[').and_then(|text| text.split_once('m')).filter(|(codes, _)| is_style(codes));
    let bare = style.map_or(text, |(_, rest)| rest).trim_start_matches(['`', '\'', '(', '[', '{', '<']);
    // A list (`a,user:password@host`), or an option or key (`--to=user:password@host`).
    let user_start =
        bare.split(':').next().and_then(|before| before.rfind([',', '=', '('])).map_or(0, |place| place + 1);
    let address = &bare[user_start..];
    let is_user = |text: &str| text.chars().all(|c| c.is_alphanumeric() || "-._~%+=".contains(c));
    let has_user = |credentials: &str| credentials.split_once(':').is_some_and(|(user, _)| is_user(user));
    match address.rsplit_once('@') {
        Some((credentials, host)) if has_user(credentials) && !is_digest(host) => {
            Cow::Owned(format!("{}{host}", &text[..text.len() - address.len()]))
        }
        _ => Cow::Borrowed(text),
    }
}

/// True for what follows the `@` of an image with a digest.
fn is_digest(text: &str) -> bool {
    text.starts_with("sha256:") || text.starts_with("sha512:")
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

/// Percent-encodes a part of a URL: all but unreserved characters (RFC 3986, 2.3).
#[must_use]
pub fn percent_encode(text: &str) -> String {
    percent_encode_except(text.as_bytes(), |byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
}

/// Percent-encodes all bytes but those of ASCII that stay.
#[must_use]
pub fn percent_encode_except(bytes: &[u8], stays: impl Fn(u8) -> bool) -> String {
    let mut encoded = String::with_capacity(bytes.len() * 2);
    for byte in bytes.iter().copied() {
        if byte.is_ascii() && stays(byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
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
    fn credentials_in_a_text_are_hidden() {
        for (text, shown) in [
            ("reach https://tom:secret@a:1 (context b): refused", "reach https://a:1 (context b): refused"),
            ("a `http://tom:sec/ret@a/`: b", "a `http://a/`: b"),
            ("http:/tom:secret@a/", "http:/a/"),
            ("http//tom:secret@a/", "http//a/"),
            ("http:///tom:secret@a//b", "http:///a//b"),
            ("http://tom:/secret@a/", "http://tom:/a/"),
            ("use `tom:secret@a:1`", "use `a:1`"),
            ("\u{1b}[33mtom:secret@a\u{1b}[0m", "\u{1b}[33ma\u{1b}[0m"),
            ("tom:secret@a//b", "a//b"),
            ("http://tom:secret@a,http://tom:secret@b", "http://a,http://b"),
            ("a/?u=http://tom:secret@b/", "a/?u=http://b/"),
            ("a,tom:secret@b:1 (tom:secret@c)", "a,b:1 (c)"),
            ("--remote-write=tom:secret@b", "--remote-write=b"),
            (r#"{"a":"http://tom:secret@a/","b":"c@d"}"#, r#"{"a":"http://a/","b":"c@d"}"#),
        ] {
            assert_eq!(hide_credentials(text), shown, "{text}");
        }
    }

    #[test]
    fn text_without_credentials_is_kept() {
        for text in [
            "",
            "docker.io/istio/pilot:1.30.1@sha256:ab",
            "registry.example:5000/istio/pilot@sha256:ab",
            "docker://istio/pilot@sha256:ab",
            "0::/user.slice/user-0.slice/user@0.service",
            "http://a:80/b@c: d",
            "tom@a: b",
            "the load at 10:30 of tom@a",
            "^/[A-Za-z0-9/_.~:@!$&'()*+,;=%-]*$",
        ] {
            assert_eq!(hide_credentials(text), text);
        }
    }

    #[test]
    fn percent_encoding_is_decoded_and_other_percent_signs_are_kept() {
        assert_eq!(percent_decoded("a%40b%2F%c3%a4"), "a@b/ä".as_bytes());
        assert_eq!(percent_decoded("50%zz%4"), b"50%zz%4");
    }
}

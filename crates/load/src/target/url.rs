//! A URL as given: a weight, and ranges of numbers in its host and path.

use super::{RangeError, TargetError, Text};
use results::{split_credentials, split_scheme};

/// Maximum weight.
const MAX_WEIGHT: u32 = 1_000_000;

/// Scheme of a URL without one.
const DEFAULT_SCHEME: &str = "http://";

/// The URL as results and messages show it: with its scheme, without credentials.
#[must_use]
pub fn shown_url(given: &str) -> String {
    Parts::of(given).shown()
}

/// A URL as given, split as text.
struct Parts<'a> {
    /// Text in front of `=`; absent if there is no weight.
    weight: Option<&'a str>,
    /// With its `://`; empty if the URL has none and names no host that could be requested over HTTP.
    scheme: &'a str,
    /// User and password as typed.
    credentials: Option<&'a str>,
    /// Host, port, path and query.
    rest: &'a str,
}

impl<'a> Parts<'a> {
    fn of(given: &'a str) -> Self {
        let (weight, url) = split_weight(given);
        let (scheme, rest) = match split_scheme(url) {
            ("", rest) if names_host(rest) => (DEFAULT_SCHEME, rest),
            split => split,
        };
        let (credentials, rest) = split_credentials(rest);
        Self { weight, scheme, credentials, rest }
    }

    fn shown(&self) -> String {
        let weight = self.weight.map(|weight| format!("{weight}=")).unwrap_or_default();
        format!("{weight}{}{}", self.scheme, self.rest)
    }
}

/// A URL as given, split into its parts.
#[derive(Clone)]
pub(super) struct UrlTemplate<'a> {
    /// For messages.
    shown: String,
    pub(super) weight: u32,
    scheme: &'a str,
    pub(super) credentials: Option<&'a str>,
    authority: Text,
    /// Path and query as given.
    given_path: Text,
    /// Path and query as requested.
    pub(super) path: Text,
}

impl<'a> UrlTemplate<'a> {
    pub(super) fn parse(given: &'a str) -> Result<Self, TargetError> {
        let parts = Parts::of(given);
        let shown = parts.shown();
        let Parts { weight, scheme, credentials, rest } = parts;
        let weight = weight
            .map_or(Some(1), |weight| weight.parse().ok().filter(|weight| (1..=MAX_WEIGHT).contains(weight)));
        let weight = weight.ok_or_else(|| TargetError::Weight(shown.clone()))?;
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let text = |text| Text::parse(text).map_err(|cause| TargetError::Range { url: shown.clone(), cause });
        let (authority, given_path) = (text(authority)?, text(path.split('#').next().unwrap_or_default())?);
        let mut path = Text::from(if path.starts_with('/') { "" } else { "/" }.to_owned());
        path.append(&given_path);
        Ok(Self { shown, weight, scheme, credentials, authority, given_path, path })
    }

    pub(super) fn has_ranges(&self) -> bool {
        self.authority.ranges().chain(self.path.ranges()).next().is_some()
    }

    /// One URL per host, at most `at_most`, with the first number in each placeholder of the path.
    pub(super) fn urls(&self, at_most: usize) -> Result<Vec<String>, TargetError> {
        let too_many = || TargetError::TooManyServers(self.shown.clone());
        let mut hosts: u64 = 1;
        for place in self.authority.ranges() {
            hosts = hosts.checked_mul(place.count()).ok_or_else(too_many)?;
        }
        if hosts > at_most as u64 {
            return Err(too_many());
        }
        (0..hosts).map(|host| self.url_of(host)).collect()
    }

    fn url_of(&self, host: u64) -> Result<String, TargetError> {
        let mut url = self.scheme.as_bytes().to_vec();
        let mut rest = host;
        let numbers: Vec<u64> = self
            .authority
            .ranges()
            .map(|place| {
                let number = place.first + rest % place.count();
                rest /= place.count();
                number
            })
            .collect();
        self.authority.write(&numbers, &mut url);
        self.given_path.write(&[], &mut url);
        String::from_utf8(url).map_err(|_| TargetError::Range {
            url: self.shown.clone(),
            cause: RangeError::Malformed(self.shown.clone()),
        })
    }
}

/// Splits a URL from the weight before it, if there is one.
fn split_weight(given: &str) -> (Option<&str>, &str) {
    match given.split_once('=') {
        Some((weight, url)) if !weight.contains([':', '/', '?', '@']) => {
            // Without a scheme, only a number is a weight.
            let is_number = !weight.is_empty() && weight.bytes().all(|byte| byte.is_ascii_digit());
            if is_number || url.contains("://") { (Some(weight), url) } else { (None, given) }
        }
        _ => (None, given),
    }
}

/// True if text without `://` begins with a host, as in `localhost:8080/path`. `http:/localhost` has a scheme with a typo.
fn names_host(text: &str) -> bool {
    let authority = &text[..text.find(['/', '?', '#']).unwrap_or(text.len())];
    !authority.is_empty() && !authority.ends_with(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(given: &str) -> Vec<String> {
        UrlTemplate::parse(given).and_then(|template| template.urls(100)).unwrap()
    }

    #[test]
    fn host_ranges_are_expanded_and_path_ranges_kept() {
        assert_eq!(urls("http://a/b?c={1..3}"), ["http://a/b?c=1"]);
        assert_eq!(
            urls("2=https://s-{08..10}.example:81"),
            ["https://s-08.example:81", "https://s-09.example:81", "https://s-10.example:81"]
        );
        assert_eq!(urls("http://{1..2}{1..2}/"), ["http://11/", "http://21/", "http://12/", "http://22/"]);
        assert_eq!(urls("http://a?x=1#part"), ["http://a?x=1"]);
        let path = UrlTemplate::parse("http://a/{5..7}/x").unwrap().path;
        assert_eq!(path.ranges().map(|range| range.count()).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn invalid_weights_and_too_many_hosts_are_named_in_errors() {
        let failure = |given| {
            UrlTemplate::parse(given).and_then(|template| template.urls(100)).unwrap_err().to_string()
        };
        for given in ["0=http://a/", "x=http://a/", "=http://a/", "1000001=http://a/", "-1=http://a/"] {
            assert!(failure(given).contains("weight"), "{given}");
        }
        for given in ["http://s-{1..101}/", "http://{0..999999999}{0..999999999}{0..999999999}/"] {
            assert!(failure(given).contains("servers"), "{given}");
        }
        assert!(failure("http://a/{1..b}").contains("range"));
        assert!(failure("x=http://tom:secret@a/").contains("`x=http://a/`"));
        // An equals sign in the query does not mark a weight.
        assert_eq!(urls("http://a/?u=http://b/"), ["http://a/?u=http://b/"]);
    }

    #[test]
    fn url_without_scheme_is_requested_over_http() {
        for (given, shown) in [
            ("localhost", "http://localhost"),
            ("localhost:8080", "http://localhost:8080"),
            ("10.0.0.1:81/a?b=c", "http://10.0.0.1:81/a?b=c"),
            ("[::1]:8080/a", "http://[::1]:8080/a"),
            ("a.example/?u=https://b/", "http://a.example/?u=https://b/"),
            ("3=localhost:8080", "3=http://localhost:8080"),
            ("tom:secret@a/", "http://a/"),
            ("grpc://a/", "grpc://a/"),
            ("ftp://a/", "ftp://a/"),
            ("http:/a", "http:/a"),
            ("/a", "/a"),
            ("", ""),
        ] {
            assert_eq!(shown_url(given), shown, "{given}");
        }
        assert_eq!(urls("s-{1..2}:81/a"), ["http://s-1:81/a", "http://s-2:81/a"]);
    }

    #[test]
    fn credentials_are_split_off() {
        for (given, credentials) in [
            ("http://tom:a%40b@h/", Some("tom:a%40b")),
            ("2=http://tom:{1..2}@h/", Some("tom:{1..2}")),
            ("http://h/a@b", None),
        ] {
            let template = UrlTemplate::parse(given).unwrap();
            assert_eq!(template.credentials, credentials, "{given}");
            assert!(template.urls(1).unwrap()[0].starts_with("http://h/"), "{given}");
        }
    }
}

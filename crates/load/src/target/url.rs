//! A URL as given: a weight, and ranges of numbers in its host and path.

use super::{RangeError, TargetError, Text};

/// Maximum weight.
const MAX_WEIGHT: u32 = 1_000_000;

/// A URL as given, split into its parts.
pub(super) struct UrlTemplate<'a> {
    url: &'a str,
    pub(super) weight: u32,
    scheme: &'a str,
    authority: Text,
    /// Path and query as given.
    given_path: Text,
    /// Path and query as requested.
    pub(super) path: Text,
}

impl<'a> UrlTemplate<'a> {
    pub(super) fn parse(given: &'a str) -> Result<Self, TargetError> {
        let (weight, url) = split_weight(given)?;
        let after_scheme = url.find("://").map_or(0, |index| index + 3);
        let (scheme, rest) = url.split_at(after_scheme);
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let text =
            |text| Text::parse(text).map_err(|cause| TargetError::Range { url: given.to_owned(), cause });
        let given_path = text(path.split('#').next().unwrap_or_default())?;
        let mut path = Text::from(if path.starts_with('/') { "" } else { "/" }.to_owned());
        path.append(&given_path);
        Ok(Self { url: given, weight, scheme, authority: text(authority)?, given_path, path })
    }

    pub(super) fn has_ranges(&self) -> bool {
        self.authority.places().chain(self.path.places()).next().is_some()
    }

    /// One URL per host, at most `at_most`, with the first number in each placeholder of the path.
    pub(super) fn urls(&self, at_most: usize) -> Result<Vec<String>, TargetError> {
        let too_many = || TargetError::TooManyServers(self.url.to_owned());
        let mut hosts: u64 = 1;
        for place in self.authority.places() {
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
            .places()
            .map(|place| {
                let number = place.first + rest % place.count();
                rest /= place.count();
                number
            })
            .collect();
        self.authority.write(&numbers, &mut url);
        self.given_path.write(&[], &mut url);
        String::from_utf8(url).map_err(|_| TargetError::Range {
            url: self.url.to_owned(),
            cause: RangeError::Malformed(self.url.to_owned()),
        })
    }
}

/// Splits a URL from the weight before it, which defaults to 1.
fn split_weight(given: &str) -> Result<(u32, &str), TargetError> {
    match given.split_once('=') {
        Some((weight, url)) if !weight.contains([':', '/', '?']) && url.contains("://") => {
            let parsed = weight.parse().ok().filter(|weight| (1..=MAX_WEIGHT).contains(weight));
            Ok((parsed.ok_or_else(|| TargetError::Weight(given.to_owned()))?, url))
        }
        _ => Ok((1, given)),
    }
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
        assert_eq!(path.places().map(|place| place.count()).collect::<Vec<_>>(), [3]);
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
        // An equals sign in the query does not mark a weight.
        assert_eq!(urls("http://a/?u=http://b/"), ["http://a/?u=http://b/"]);
    }
}

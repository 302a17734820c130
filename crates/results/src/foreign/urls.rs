//! Target of a load whose file has the URL of each request.

use std::collections::BTreeSet;

/// URLs that name a target. Loads with more of them number their requests.
const MAX_URLS: usize = 16;

/// URLs of requests, at most so many, or their origins.
#[derive(Debug, Default)]
pub(super) struct Urls {
    urls: BTreeSet<String>,
    /// True once there were too many URLs.
    are_origins: bool,
}

impl Urls {
    pub(super) fn add(&mut self, url: &str) {
        let url = if self.are_origins { origin(url) } else { url };
        if self.urls.contains(url) || self.are_origins && self.urls.len() == MAX_URLS {
            return;
        }
        self.urls.insert(url.to_owned());
        if self.urls.len() > MAX_URLS {
            self.are_origins = true;
            self.urls = self.urls.iter().map(|url| origin(url).to_owned()).collect();
            if self.urls.len() > MAX_URLS {
                self.urls.pop_last();
            }
        }
    }

    pub(super) fn target(&self) -> Option<String> {
        let urls: Vec<&str> = self.urls.iter().map(String::as_str).collect();
        (!urls.is_empty()).then(|| urls.join(" "))
    }
}

/// Scheme and authority of a URL.
fn origin(url: &str) -> &str {
    let authority = url.find("://").map_or(0, |at| at + "://".len());
    let length = url[authority..].find(['/', '?', '#']).unwrap_or(url.len() - authority);
    &url[..authority + length]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_has_urls_or_the_origins_of_many() {
        let mut urls = Urls::default();
        assert_eq!(urls.target(), None);
        for url in ["http://b/", "http://a/x", "http://b/"] {
            urls.add(url);
        }
        assert_eq!(urls.target().as_deref(), Some("http://a/x http://b/"));
        (0..100).for_each(|number| urls.add(&format!("http://a/?user={number}")));
        assert_eq!(urls.target().as_deref(), Some("http://a http://b"));
        (0..100).for_each(|number| urls.add(&format!("http://host-{number}/")));
        assert_eq!(urls.target().unwrap().split(' ').count(), MAX_URLS);
    }
}

//! Versions of Istio, as users write them.

use std::fmt;
use std::str::FromStr;

/// Name of the version that is built from the pinned source.
const PINNED: &str = "pinned";

/// Maximum length of a tag in registries.
const MAX_LENGTH: usize = 128;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IstioVersion {
    /// Built from the pinned source.
    Pinned,
    /// Tag of the release's images, such as `1.30.4` or `1.30.4-distroless`.
    Release(ReleaseName),
}

/// Tag of a release's images. It begins with a digit and is safe as a part of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReleaseName(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a release of Istio: expected a tag of its images such as 1.30.4, or `{PINNED}`")]
pub struct BadVersion(String);

impl FromStr for IstioVersion {
    type Err = BadVersion;

    fn from_str(text: &str) -> Result<Self, BadVersion> {
        if text == PINNED { Ok(Self::Pinned) } else { text.parse().map(Self::Release) }
    }
}

impl FromStr for ReleaseName {
    type Err = BadVersion;

    fn from_str(text: &str) -> Result<Self, BadVersion> {
        let may_occur = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let is_tag = text.starts_with(|first: char| first.is_ascii_digit())
            && text.len() <= MAX_LENGTH
            && text.bytes().all(may_occur);
        if is_tag {
            Ok(Self(text.to_owned()))
        } else {
            Err(BadVersion(text.chars().take(MAX_LENGTH).collect()))
        }
    }
}

impl ReleaseName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IstioVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pinned => PINNED,
            Self::Release(name) => name.as_str(),
        })
    }
}

impl fmt::Display for ReleaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_tags_starting_with_digit() {
        assert_eq!("pinned".parse(), Ok(IstioVersion::Pinned));
        for text in ["1.30.4", "1.30.4-distroless", "1.31.0-rc.0", "1.30-alpha.0f2c_x"] {
            let version: IstioVersion = text.parse().unwrap();
            assert_eq!((version.to_string().as_str(), version != IstioVersion::Pinned), (text, true));
        }
        for text in ["", "latest", "v1.30.4", "-1", "1/2", "../1", "1..\u{e9}", "1 2", &"1".repeat(129)] {
            assert!(text.parse::<IstioVersion>().is_err(), "{text}");
        }
    }
}

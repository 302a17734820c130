//! Digests of content: `sha256:…`, `sha512:…`.

use std::fmt;
use std::str::FromStr;

use ring::digest::{Algorithm, Context, SHA256, SHA512};

/// Digest of some content. Its format has been checked.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Digest {
    algorithm: &'static Algorithm,
    hex: String,
}

impl Digest {
    pub(crate) fn from_content(content: &[u8]) -> Self {
        let mut hasher = Hasher::new(&SHA256);
        hasher.update(content);
        hasher.finish()
    }

    pub(crate) fn hasher(&self) -> Hasher {
        Hasher::new(self.algorithm)
    }

    /// True if this is the content's digest.
    pub(crate) fn matches(&self, content: &[u8]) -> bool {
        let mut hasher = self.hasher();
        hasher.update(content);
        hasher.finish() == *self
    }
}

impl FromStr for Digest {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (algorithm, hex) = text.split_once(':').ok_or(())?;
        let algorithm = match algorithm {
            "sha256" => &SHA256,
            "sha512" => &SHA512,
            _ => return Err(()),
        };
        let is_hex = hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !is_hex || hex.len() != 2 * algorithm.output_len() {
            return Err(());
        }
        Ok(Self { algorithm, hex: hex.to_owned() })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.algorithm == &SHA256 { "sha256" } else { "sha512" };
        write!(f, "{name}:{}", self.hex)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Computes a digest.
pub(crate) struct Hasher {
    algorithm: &'static Algorithm,
    context: Context,
}

impl Hasher {
    fn new(algorithm: &'static Algorithm) -> Self {
        Self { algorithm, context: Context::new(algorithm) }
    }

    pub(crate) fn sha256() -> Self {
        Self::new(&SHA256)
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.context.update(bytes);
    }

    pub(crate) fn finish(self) -> Digest {
        Digest { algorithm: self.algorithm, hex: hex(self.context.finish().as_ref()) }
    }

    /// Hexadecimal digest without the algorithm's name.
    pub(crate) fn finish_hex(self) -> String {
        hex(self.context.finish().as_ref())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

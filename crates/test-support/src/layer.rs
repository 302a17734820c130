//! Layers: archives of files, links and whiteouts.

use std::io::Write;
use std::path::Path;

use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tar::{Builder, EntryType, Header};

const NAME_BYTES: usize = 100;

/// How a layer is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not compressed.
    None,
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

/// Builds a layer. Names are written as given and may be invalid.
pub struct LayerBuilder {
    archive: Builder<Vec<u8>>,
    compression: Compression,
}

impl LayerBuilder {
    /// An empty layer.
    pub fn new(compression: Compression) -> Self {
        Self { archive: Builder::new(Vec::new()), compression }
    }

    /// Adds a file with mode 755.
    #[must_use]
    pub fn file(self, name: &str, content: &[u8]) -> Self {
        self.entry(name, EntryType::Regular, None, content)
    }

    /// Adds a file with the content of a file on this machine.
    #[must_use]
    pub fn file_from(self, name: &str, path: &Path) -> Self {
        let content = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        self.file(name, &content)
    }

    /// Adds a directory.
    #[must_use]
    pub fn directory(self, name: &str) -> Self {
        self.entry(&format!("{name}/"), EntryType::Directory, None, b"")
    }

    /// Adds a symbolic link.
    #[must_use]
    pub fn symlink(self, name: &str, target: &str) -> Self {
        self.entry(name, EntryType::Symlink, Some(target), b"")
    }

    /// Adds a hard link to another entry of the layer.
    #[must_use]
    pub fn hard_link(self, name: &str, target: &str) -> Self {
        self.entry(name, EntryType::Link, Some(target), b"")
    }

    /// Adds a character device.
    #[must_use]
    pub fn device(self, name: &str) -> Self {
        self.entry(name, EntryType::Char, None, b"")
    }

    /// Adds a whiteout, which removes a file or directory of lower layers.
    #[must_use]
    pub fn whiteout(self, path: &str) -> Self {
        let name = match path.rsplit_once('/') {
            Some((directory, name)) => format!("{directory}/.wh.{name}"),
            None => format!(".wh.{path}"),
        };
        self.file(&name, b"")
    }

    /// Adds an opaque whiteout, which hides the contents of a directory in lower layers.
    #[must_use]
    pub fn opaque(self, directory: &str) -> Self {
        self.file(&format!("{directory}/.wh..wh..opq"), b"")
    }

    fn entry(mut self, name: &str, entry_type: EntryType, target: Option<&str>, content: &[u8]) -> Self {
        let mut header = Header::new_gnu();
        header.set_entry_type(entry_type);
        header.set_size(content.len() as u64);
        header.set_mode(0o755);
        header.set_mtime(1_700_000_000);
        if let Some(target) = target {
            header.set_link_name_literal(target).expect("a short target");
        }
        let written = if name.len() <= NAME_BYTES {
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_cksum();
            self.archive.append(&header, content)
        } else {
            self.archive.append_data(&mut header, name, content)
        };
        written.expect("written to memory");
        self
    }

    /// The compression and the compressed bytes.
    pub(crate) fn finish(self) -> (Compression, Vec<u8>) {
        let archive = self.archive.into_inner().expect("written to memory");
        let bytes = match self.compression {
            Compression::None => archive,
            Compression::Gzip => gzip(&archive),
            Compression::Zstd => compress_to_vec(&archive[..], CompressionLevel::Fastest),
        };
        (self.compression, bytes)
    }
}

pub(crate) fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).expect("written to memory");
    encoder.finish().expect("written to memory")
}

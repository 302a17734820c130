//! Holds wanted files until everything that was read is verified.

use std::collections::HashMap;
use std::fs::{OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::digest::Hasher;
use crate::layer::LayerError;

const BUFFER_BYTES: usize = 64 << 10;

/// Entry of a layer: index of the layer, and path.
pub(crate) type Source = (usize, String);

/// Files in a private directory within the destination. It is removed with its contents, except for files
/// that were moved out.
pub(crate) struct Spool {
    folder: TempDir,
    files: HashMap<Source, SpooledFile>,
    written: usize,
}

#[derive(Clone)]
pub(crate) struct SpooledFile {
    path: PathBuf,
    pub(crate) sha256: String,
    pub(crate) size_bytes: u64,
}

impl Spool {
    pub(crate) fn new(destination: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix(".images-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(destination)?;
        Ok(Self { folder, files: HashMap::new(), written: 0 })
    }

    pub(crate) fn get(&self, source: &Source) -> Option<&SpooledFile> {
        self.files.get(source)
    }

    /// Writes the content of an entry. If several have the same path, the last one counts.
    pub(crate) fn write(
        &mut self,
        source: Source,
        content: &mut dyn Read,
        max_bytes: u64,
    ) -> Result<(), LayerError> {
        self.forget(&source);
        let path = self.folder.path().join(self.written.to_string());
        self.written += 1;
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let mut file = file.map_err(LayerError::Write)?;
        let mut hasher = Hasher::sha256();
        let mut size_bytes = 0;
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let count = content.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            size_bytes += count as u64;
            if size_bytes > max_bytes {
                return Err(LayerError::Hostile(format!(
                    "its file /{} is larger than {max_bytes} bytes",
                    source.1
                )));
            }
            hasher.update(&buffer[..count]);
            file.write_all(&buffer[..count]).map_err(LayerError::Write)?;
        }
        self.files.insert(source, SpooledFile { path, sha256: hasher.finish_hex(), size_bytes });
        Ok(())
    }

    /// Drops an entry that another with the same path replaces.
    pub(crate) fn forget(&mut self, source: &Source) {
        if let Some(file) = self.files.remove(source) {
            // If this fails, the file is removed with the directory.
            let _ = std::fs::remove_file(file.path);
        }
    }

    /// Moves a file to its final name and makes it readable for others. `is_last` if it is not needed under
    /// another name.
    pub(crate) fn publish(&self, file: &SpooledFile, to: &Path, mode: u32, is_last: bool) -> io::Result<()> {
        let from = if is_last {
            file.path.clone()
        } else {
            let copy = self.folder.path().join("copy");
            std::fs::copy(&file.path, &copy)?;
            copy
        };
        std::fs::set_permissions(&from, Permissions::from_mode(mode))?;
        std::fs::rename(&from, to)
    }
}

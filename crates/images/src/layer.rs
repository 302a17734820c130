//! Reads a layer, which is a tar archive from an untrusted source.

use std::io::{self, Read};

use tar::{Archive, EntryType, PaxExtensions};

use crate::Limits;

/// Maximum size of the extended headers of one entry.
const MAX_EXTENSION_BYTES: u64 = 1 << 20;
const MAX_PATH_BYTES: usize = 4096;

/// One entry of a layer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Path from the image's root, without a slash at either end.
    pub(crate) path: String,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    File {
        size: u64,
    },
    Directory,
    /// Target as written.
    Symlink(String),
    /// Path of another entry of the layer.
    HardLink(String),
    /// Device, pipe or something rarer.
    Special(&'static str),
}

#[derive(Debug)]
pub(crate) enum LayerError {
    /// Reading failed: the archive is truncated or is not an archive.
    Read(io::Error),
    /// The archive is readable but malicious.
    Hostile(String),
    /// A file could not be written.
    Write(io::Error),
}

impl From<io::Error> for LayerError {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

/// Names from extended headers for the entry after them.
#[derive(Default)]
struct Extensions {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    is_sparse: bool,
}

/// Entries of the layers read so far, and their limits: all paths and links of an image are held in memory.
#[derive(Debug)]
pub(crate) struct Budget {
    max_entries: usize,
    max_name_bytes: usize,
    entries: usize,
    name_bytes: usize,
}

impl Budget {
    pub(crate) fn new(limits: &Limits) -> Self {
        let Limits { entries, name_bytes, .. } = *limits;
        Self { max_entries: entries, max_name_bytes: name_bytes, entries: 0, name_bytes: 0 }
    }

    fn charge_entry(&mut self) -> Result<(), LayerError> {
        self.entries += 1;
        if self.entries <= self.max_entries {
            return Ok(());
        }
        Err(LayerError::Hostile(format!("the layers have more than {} entries", self.max_entries)))
    }

    fn charge_names(&mut self, entry: &Entry) -> Result<(), LayerError> {
        let link_bytes = match &entry.kind {
            Kind::Symlink(target) | Kind::HardLink(target) => target.len(),
            Kind::File { .. } | Kind::Directory | Kind::Special(_) => 0,
        };
        self.name_bytes += entry.path.len() + link_bytes;
        if self.name_bytes <= self.max_name_bytes {
            return Ok(());
        }
        let reason =
            format!("the paths and links of the layers take more than {} bytes", self.max_name_bytes);
        Err(LayerError::Hostile(reason))
    }
}

/// Calls `each` for every entry of the archive, with its content if it is a file.
pub(crate) fn read_layer(
    archive: impl Read,
    budget: &mut Budget,
    mut each: impl FnMut(Entry, &mut dyn Read) -> Result<(), LayerError>,
) -> Result<(), LayerError> {
    let mut archive = Archive::new(archive);
    let mut extensions = Extensions::default();
    // Raw, since the library would otherwise keep extended headers of any size in memory.
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        budget.charge_entry()?;
        match entry.header().entry_type() {
            EntryType::XGlobalHeader => {}
            EntryType::GNULongName => extensions.path = Some(until_nul(read_extension(&mut entry)?)),
            EntryType::GNULongLink => extensions.link = Some(until_nul(read_extension(&mut entry)?)),
            EntryType::XHeader => read_pax(&read_extension(&mut entry)?, &mut extensions)?,
            entry_type => {
                let extensions = std::mem::take(&mut extensions);
                if let Some(read) = describe(entry.header(), entry_type, extensions)? {
                    budget.charge_names(&read)?;
                    each(read, &mut entry)?;
                }
            }
        }
    }
    Ok(())
}

fn read_extension(entry: &mut impl Read) -> Result<Vec<u8>, LayerError> {
    let mut content = Vec::new();
    entry.take(MAX_EXTENSION_BYTES + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MAX_EXTENSION_BYTES {
        return Err(LayerError::Hostile(
            "an entry of the layer has extended headers of more than 1 MiB".to_owned(),
        ));
    }
    Ok(content)
}

fn until_nul(mut name: Vec<u8>) -> Vec<u8> {
    name.truncate(name.iter().position(|&byte| byte == 0).unwrap_or(name.len()));
    name
}

fn read_pax(content: &[u8], extensions: &mut Extensions) -> Result<(), LayerError> {
    for record in PaxExtensions::new(content) {
        let record = record?;
        match record.key_bytes() {
            b"path" => extensions.path = Some(record.value_bytes().to_vec()),
            b"linkpath" => extensions.link = Some(record.value_bytes().to_vec()),
            b"size" => {
                let size = record.value().ok().and_then(|value| value.parse().ok());
                extensions.size = Some(
                    size.ok_or_else(|| LayerError::Hostile("an entry's size is not a number".to_owned()))?,
                );
            }
            key if key.starts_with(b"GNU.sparse.") => extensions.is_sparse = true,
            _ => {}
        }
    }
    Ok(())
}

/// Returns `None` for the root itself.
fn describe(
    header: &tar::Header,
    entry_type: EntryType,
    extensions: Extensions,
) -> Result<Option<Entry>, LayerError> {
    let size = header.entry_size()?;
    if extensions.size.is_some_and(|other| other != size) {
        // Implementations disagree about such archives.
        return Err(LayerError::Hostile("an entry of the layer has two sizes".to_owned()));
    }
    let name = extensions.path.unwrap_or_else(|| header.path_bytes().into_owned());
    let Some(path) = normalize(&name)? else { return Ok(None) };
    let link =
        || extensions.link.clone().or_else(|| header.link_name_bytes().map(std::borrow::Cow::into_owned));
    let kind = match entry_type {
        _ if extensions.is_sparse => Kind::Special("sparse file"),
        EntryType::Regular | EntryType::Continuous if name.ends_with(b"/") => Kind::Directory,
        EntryType::Regular | EntryType::Continuous => Kind::File { size },
        EntryType::Directory => Kind::Directory,
        EntryType::Symlink => Kind::Symlink(text_of(link().unwrap_or_default())?),
        EntryType::Link => match normalize(&link().unwrap_or_default())? {
            Some(target) => Kind::HardLink(target),
            None => return Err(LayerError::Hostile(format!("{path} is a hard link to nothing"))),
        },
        EntryType::Char | EntryType::Block => Kind::Special("device"),
        EntryType::Fifo => Kind::Special("pipe"),
        EntryType::GNUSparse => Kind::Special("sparse file"),
        _ => Kind::Special("file of an unknown kind"),
    };
    Ok(Some(Entry { path, kind }))
}

fn text_of(name: Vec<u8>) -> Result<String, LayerError> {
    if name.len() > MAX_PATH_BYTES || name.contains(&0) {
        return Err(LayerError::Hostile("an entry of the layer has a name that no file can have".to_owned()));
    }
    Ok(String::from_utf8(name).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// Path from the image's root: `./usr//bin/` becomes `usr/bin`. `None` is the root.
fn normalize(name: &[u8]) -> Result<Option<String>, LayerError> {
    let name = text_of(name.to_vec())?;
    let mut path = String::with_capacity(name.len());
    for component in name.split('/') {
        match component {
            "" | "." => {}
            ".." => {
                let shown = crate::error::one_line(&name, 200);
                return Err(LayerError::Hostile(format!(
                    "an entry of a layer leads out of the image: {shown}"
                )));
            }
            component => {
                if !path.is_empty() {
                    path.push('/');
                }
                path.push_str(component);
            }
        }
    }
    Ok(Some(path).filter(|path| !path.is_empty()))
}

/// Reads `archive` like a layer, and checks invariants of all archives: no entry leads out of the image, and
/// no more is read of an entry than its header says. For fuzzing.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn check_archive(archive: &[u8]) {
    let mut view = crate::view::View::default();
    let mut entries = crate::view::LayerEntries::default();
    let mut budget = Budget::new(&Limits::default());
    let result = read_layer(archive, &mut budget, |entry, content| {
        assert!(!entry.path.is_empty() && entry.path.len() <= MAX_PATH_BYTES);
        assert!(entry.path.split('/').all(|part| !matches!(part, "" | "." | "..")), "{}", entry.path);
        if let Kind::File { size } = entry.kind {
            assert!(io::copy(content, &mut io::sink()).map_err(LayerError::Read)? <= size);
        }
        entries.insert(entry);
        Ok(())
    });
    let paths: Vec<String> = entries.paths().map(str::to_owned).collect();
    view.merge(0, &entries);
    for path in &paths {
        let first = view.resolve(path, true);
        assert!(!matches!(first, crate::view::Resolution::Pending { .. }));
        assert_eq!(first, view.resolve(path, true));
    }
    drop(result);
}

#[cfg(test)]
mod tests;

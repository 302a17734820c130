//! Extracts files from the image that a reference names.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::io::{self, BufReader, Read};
use std::path::{Component, Path};

use http::Method;
use serde::{Deserialize, Serialize};

use crate::blob::BlobReader;
use crate::decompress::uncompressed;
use crate::digest::Digest;
use crate::layer::{Budget, Kind, LayerError, read_layer};
use crate::manifest::{self, Descriptor, Document, Manifest, Unreadable};
use crate::session::Session;
use crate::spool::{Source, Spool};
use crate::view::{LayerEntries, Resolution, View};
use crate::{Access, ImageError, ImageReference, Platform, Watch};

const DIGEST_HEADER: &str = "docker-content-digest";
const BUFFER_BYTES: usize = 64 << 10;

/// A file to extract from an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Path from the image's root, with or without a leading slash.
    pub path: String,
    /// Name in the destination.
    pub name: String,
    /// True for mode 755, false for 644.
    pub executable: bool,
    /// True if the image may lack it. This is certain only once all its layers were read.
    pub optional: bool,
}

/// Result of an extraction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extracted {
    /// Reference of the image.
    pub reference: String,
    /// Digest of the index, if there is one.
    pub index_digest: Option<String>,
    /// Digest of the platform's manifest.
    pub manifest_digest: String,
    /// Platform of the image; a chart has none.
    pub platform: Option<Platform>,
    /// In the order of the request, without optional files that the image lacks.
    pub files: Vec<ExtractedFile>,
}

/// A file in the destination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtractedFile {
    /// Path as requested.
    pub path: String,
    /// Name in the destination.
    pub name: String,
    /// SHA-256 of its content in hexadecimal.
    pub sha256: String,
    /// Size in bytes.
    pub size_bytes: u64,
}

/// Manifest of the platform, and its origin.
struct Image {
    index_digest: Option<Digest>,
    digest: Digest,
    platform: Option<Platform>,
    manifest: Manifest,
}

/// Pulls the wanted files of an image or chart into the directory `destination`. Either all of them appear
/// there, or none; existing files of the same names are replaced. Blocks, and must not be called from an
/// async task.
pub fn extract(
    reference: &ImageReference,
    wanted: &[Wanted],
    destination: &Path,
    platform: &Platform,
    access: &Access,
    watch: &mut dyn Watch,
) -> Result<Extracted, ImageError> {
    check_wanted(reference, wanted)?;
    let session = Session::new(reference, access, watch)?;
    let unwritable = |error: &io::Error| ImageError::Destination {
        image: reference.to_string(),
        path: destination.to_path_buf(),
        reason: crate::error::root_cause(error),
    };
    let spool = Spool::new(destination).map_err(|error| unwritable(&error))?;
    let image = find_image(&session, platform)?;
    let mut extraction = Extraction {
        session: &session,
        layers: &image.manifest.layers,
        wanted,
        view: View::default(),
        spool,
        budget: Budget::new(session.limits()),
        unwritable: &unwritable,
    };
    let sources = extraction.run()?;
    let files =
        publish(&extraction.spool, wanted, &sources, destination).map_err(|error| unwritable(&error))?;
    Ok(Extracted {
        reference: reference.to_string(),
        index_digest: image.index_digest.map(|digest| digest.to_string()),
        manifest_digest: image.digest.to_string(),
        platform: image.platform,
        files,
    })
}

/// Digest of what a reference names. A HEAD request suffices, so it also checks that the registry is
/// reachable and has it.
pub fn digest(
    reference: &ImageReference,
    access: &Access,
    watch: &mut dyn Watch,
) -> Result<String, ImageError> {
    let session = Session::new(reference, access, watch)?;
    let path = manifest_path(reference, &reference.version());
    let response = session.request(&Method::HEAD, &path, manifest::ACCEPTED, 0)?;
    let told = response.headers().get(DIGEST_HEADER).and_then(|value| value.to_str().ok());
    match told.and_then(|digest| digest.parse::<Digest>().ok()) {
        Some(digest) => Ok(digest.to_string()),
        None => fetch_manifest(&session, &reference.version(), reference.digest())
            .map(|(_, digest)| digest.to_string()),
    }
}

fn check_wanted(reference: &ImageReference, wanted: &[Wanted]) -> Result<(), ImageError> {
    let mut names = HashSet::new();
    for file in wanted {
        let mut components = Path::new(&file.name).components();
        let is_name = matches!((components.next(), components.next()), (Some(Component::Normal(_)), None));
        let problem = if !is_name || file.name.contains('/') {
            "is not the name of a file"
        } else if !names.insert(&file.name) {
            "is the name of two files"
        } else if file.path.split('/').any(|part| part == ".." || part == ".") {
            "has a path with dots"
        } else {
            continue;
        };
        return Err(ImageError::InvalidRequest {
            image: reference.to_string(),
            reason: format!("wanted file \"{}\" {problem}", file.name),
        });
    }
    Ok(())
}

fn manifest_path(reference: &ImageReference, version: &str) -> String {
    format!("{}/manifests/{version}", reference.repository())
}

/// Fetches a manifest or index. Its digest is `expected`, or else the one from the registry.
fn fetch_manifest(
    session: &Session<'_>,
    version: &str,
    expected: Option<&Digest>,
) -> Result<(Document, Digest), ImageError> {
    let fetched = session.document(&manifest_path(session.image, version), manifest::ACCEPTED, "manifest")?;
    let header =
        |name: &str| fetched.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let told: Option<Digest> = header(DIGEST_HEADER).parse().ok();
    for digest in expected.into_iter().chain(told.as_ref()) {
        if !digest.matches(&fetched.body) {
            let found = Digest::from_content(&fetched.body);
            return Err(session.wrong_digest(format!("manifest {digest} came with other content, {found}")));
        }
    }
    let document = manifest::read(&fetched.body, header("content-type")).map_err(|error| match error {
        Unreadable::Invalid(reason) => session.invalid(reason),
        Unreadable::Unsupported(reason) => {
            ImageError::Unsupported { image: session.image.to_string(), reason }
        }
    })?;
    Ok((document, expected.cloned().or(told).unwrap_or_else(|| Digest::from_content(&fetched.body))))
}

fn find_image(session: &Session<'_>, platform: &Platform) -> Result<Image, ImageError> {
    let no_such_platform = |available: String| ImageError::NoSuchPlatform {
        image: session.image.to_string(),
        platform: platform.clone(),
        available,
    };
    let (document, digest) = fetch_manifest(session, &session.image.version(), session.image.digest())?;
    let (index_digest, digest, manifest) = match document {
        Document::Manifest(manifest) => (None, digest, manifest),
        Document::Index(entries) => {
            let chosen = manifest::choose(&entries, platform).map_err(no_such_platform)?;
            let version = chosen.digest.to_string();
            let (Document::Manifest(manifest), of_platform) =
                fetch_manifest(session, &version, Some(&chosen.digest))?
            else {
                return Err(session.invalid("its index leads to another index".to_owned()));
            };
            (Some(digest), of_platform, manifest)
        }
    };
    let found = read_platform(session, &manifest.config)?;
    if let Some(found) = &found
        && found != platform
    {
        return Err(no_such_platform(crate::error::one_line(&found.to_string(), 50)));
    }
    Ok(Image { index_digest, digest, platform: found, manifest })
}

/// The platform in an image's configuration; other artifacts have none.
fn read_platform(session: &Session<'_>, config: &Descriptor) -> Result<Option<Platform>, ImageError> {
    if !config.is_image_config() {
        return Ok(None);
    }
    let mut blob = BlobReader::configuration(session, config)?;
    let mut content = Vec::new();
    if let Err(error) = blob.read_to_end(&mut content) {
        return Err(session.take_failure().unwrap_or_else(|| session.unreachable(error.to_string())));
    }
    blob.finish()?;
    let platform = serde_json::from_slice(&content);
    platform.map(Some).map_err(|_| session.invalid("its image's configuration names no platform".to_owned()))
}

/// The extraction of files from layers.
struct Extraction<'e, 'a> {
    session: &'e Session<'a>,
    /// Lowest layer first.
    layers: &'e [Descriptor],
    wanted: &'e [Wanted],
    view: View,
    spool: Spool,
    /// Entries and names read so far, over all layers.
    budget: Budget,
    unwritable: &'e dyn Fn(&io::Error) -> ImageError,
}

impl Extraction<'_, '_> {
    /// Spools the content of the wanted files and returns its source for each; `None` for optional files that
    /// the image lacks.
    fn run(&mut self) -> Result<Vec<Option<Source>>, ImageError> {
        for layer in (0..self.layers.len()).rev() {
            let pending = self.pending()?;
            if pending.is_empty() {
                break;
            }
            let entries = self.read(layer, &pending)?;
            self.view.merge(layer, &entries);
        }
        let sources = self.wanted.iter().map(|file| self.source(file)).collect::<Result<Vec<_>, _>>()?;
        // A link may lead to an entry of a layer that was read before the link was known.
        let mut passed: HashMap<usize, HashSet<String>> = HashMap::new();
        for (layer, path) in sources.iter().flatten() {
            if self.spool.get(&(*layer, path.clone())).is_none() {
                passed.entry(*layer).or_default().insert(path.clone());
            }
        }
        for (layer, paths) in passed {
            self.budget = Budget::new(self.session.limits());
            self.read(layer, &paths)?;
        }
        Ok(sources)
    }

    /// Paths that lower layers may have.
    fn pending(&self) -> Result<HashSet<String>, ImageError> {
        let mut pending = HashSet::new();
        for file in self.wanted {
            match self.view.resolve(&file.path, false) {
                Resolution::Pending { path } => {
                    pending.insert(path);
                }
                Resolution::Absent(reason) if !file.optional => return Err(self.absent(file, reason)),
                Resolution::Hostile(reason) => return Err(self.session.hostile(reason)),
                Resolution::File { .. } | Resolution::Absent(_) => {}
            }
        }
        Ok(pending)
    }

    fn source(&self, file: &Wanted) -> Result<Option<Source>, ImageError> {
        match self.view.resolve(&file.path, true) {
            Resolution::File { layer, source } => Ok(Some((layer, source))),
            Resolution::Hostile(reason) => Err(self.session.hostile(reason)),
            Resolution::Absent(_) if file.optional => Ok(None),
            Resolution::Absent(reason) => Err(self.absent(file, reason)),
            Resolution::Pending { path } => Err(self.absent(file, format!("none of its layers has /{path}"))),
        }
    }

    fn absent(&self, file: &Wanted, reason: String) -> ImageError {
        ImageError::FileAbsent { image: self.session.image.to_string(), path: file.path.clone(), reason }
    }

    /// Reads a layer to its end, spools the content of `paths`, and verifies the layer.
    fn read(&mut self, layer: usize, paths: &HashSet<String>) -> Result<LayerEntries, ImageError> {
        let session = self.session;
        let descriptor = &self.layers[layer];
        let mut blob = BlobReader::layer(session, descriptor)?;
        let mut entries = LayerEntries::default();
        let (spool, budget) = (&mut self.spool, &mut self.budget);
        let result = uncompressed(BufReader::with_capacity(BUFFER_BYTES, &mut blob))
            .map_err(LayerError::Read)
            .and_then(|archive| {
                let archive = Guarded::new(session, archive);
                read_layer(archive, budget, |entry, content| {
                    let source = (layer, entry.path.clone());
                    match entry.kind {
                        Kind::File { size } if paths.contains(&entry.path) => {
                            spool.write(source, content, size.min(session.limits().file_bytes))?;
                        }
                        _ => spool.forget(&source),
                    }
                    entries.insert(entry);
                    Ok(())
                })
            });
        if let Some(failure) = session.take_failure() {
            return Err(failure);
        }
        match result {
            Ok(()) => blob.finish()?,
            Err(LayerError::Hostile(reason)) => return Err(session.hostile(reason)),
            Err(LayerError::Write(error)) => return Err((self.unwritable)(&error)),
            Err(LayerError::Read(error)) => {
                // Content that was changed in transit is rarely a valid archive, so verify the digest first.
                blob.finish()?;
                let reason = crate::error::root_cause(&error);
                return Err(session
                    .hostile(format!("layer {} is not a readable archive: {reason}", descriptor.digest)));
            }
        }
        Ok(entries)
    }
}

/// Uncompressed bytes, limited in number.
struct Guarded<'s, 'a, R> {
    session: &'s Session<'a>,
    source: R,
    left: Cell<u64>,
}

impl<'s, 'a, R> Guarded<'s, 'a, R> {
    fn new(session: &'s Session<'a>, source: R) -> Self {
        Self { session, source, left: Cell::new(session.limits().uncompressed_layer_bytes) }
    }
}

impl<R: Read> Read for Guarded<'_, '_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.session.look().map_err(|error| self.session.fail(error))?;
        let count = self.source.read(buffer)?;
        match self.left.get().checked_sub(count as u64) {
            Some(left) => self.left.set(left),
            None => {
                let most = self.session.limits().uncompressed_layer_bytes;
                let reason = format!("one of its layers is larger than {most} bytes once uncompressed");
                return Err(self.session.fail(self.session.hostile(reason)));
            }
        }
        Ok(count)
    }
}

fn publish(
    spool: &Spool,
    wanted: &[Wanted],
    sources: &[Option<Source>],
    destination: &Path,
) -> io::Result<Vec<ExtractedFile>> {
    let mut files = Vec::new();
    for (number, (file, source)) in wanted.iter().zip(sources).enumerate() {
        let Some(source) = source else { continue };
        let spooled = spool.get(source).ok_or(io::ErrorKind::NotFound)?;
        let is_last = !sources[number + 1..].contains(&Some(source.clone()));
        let mode = if file.executable { 0o755 } else { 0o644 };
        spool.publish(spooled, &destination.join(&file.name), mode, is_last)?;
        files.push(ExtractedFile {
            path: file.path.clone(),
            name: file.name.clone(),
            sha256: spooled.sha256.clone(),
            size_bytes: spooled.size_bytes,
        });
    }
    Ok(files)
}

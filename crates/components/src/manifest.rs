//! The record next to each installed component: its origin, and the digests of its files at installation
//! time.
//!
//! It is written last, so a directory without one is not an installation. [`Verify::Quick`] reads only files
//! whose size or modification time differ; [`Verify::Thorough`] reads all files.

use jiff::Timestamp;
use results::ComponentImage;
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

pub(super) const MANIFEST_FILE: &str = "installed.json";
const MANIFEST_SCHEMA: &str = "meshmeter.component/1";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InstallManifest {
    schema: String,
    component: String,
    pub(super) version: String,
    /// SHA-256 of everything that determines what is installed: pins, our own sources, options.
    recipe_sha256: String,
    /// For example `go1.26.8`.
    made_by: String,
    /// RFC 3339.
    installed_at: String,
    pub(super) files: Vec<RecordedFile>,
    /// Images that files were taken from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) images: Vec<ComponentImage>,
    /// Parts of a release that were unavailable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) lacks: Vec<Lack>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecordedFile {
    /// Relative to the component's directory.
    path: PathBuf,
    pub(super) size_bytes: u64,
    /// Modification time since 1970.
    modified_ns: i128,
    pub(super) sha256: String,
    #[serde(flatten)]
    pub(super) origin: FileOrigin,
}

/// Origin of a file from an image; empty for others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileOrigin {
    /// Version that the program reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Reference of the image, one of [`InstallManifest::images`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
}

/// An unavailable part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lack {
    /// Name of the component.
    pub part: String,
    pub reason: String,
}

/// An installed package's identity, and the files that it must have.
#[derive(Debug)]
pub(super) struct Expected<'a> {
    pub component: &'a str,
    pub version: &'a str,
    /// Accepted digests of recipes.
    pub recipes: Vec<String>,
    pub files: &'a [&'a str],
    /// Further files that may exist.
    pub optional: &'a [&'a str],
    /// Files that are not programs.
    pub data: &'a [&'a str],
}

/// Result of making a package.
#[derive(Debug, Default)]
pub(super) struct Made {
    /// For example `go1.26.8`.
    pub by: String,
    pub recipe: String,
    pub files: Vec<(PathBuf, FileOrigin)>,
    pub images: Vec<ComponentImage>,
    pub lacks: Vec<Lack>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verify {
    /// Hashes only files whose size or modification time differ from the record.
    Quick,
    /// Hashes every file.
    Thorough,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Flaw {
    #[error("it is not installed")]
    Absent,
    #[error("it has no record ({MANIFEST_FILE}) of what it was made from")]
    NoRecord,
    #[error("its record {} cannot be read: {_1}", .0.display())]
    BadRecord(PathBuf, io::Error),
    #[error("it was installed from other pins than those of this meshmeter")]
    OtherPins,
    #[error("{} cannot be read: {_1}", .0.display())]
    Unreadable(PathBuf, io::Error),
    #[error("{} has changed since it was installed", .0.display())]
    Changed(PathBuf),
    #[error("{} cannot be run: its mode is {_1:o}", .0.display())]
    NotRunnable(PathBuf, u32),
}

pub(super) fn write(package: &Path, expected: &Expected<'_>, made: Made) -> io::Result<InstallManifest> {
    let files = made.files.into_iter().map(|(path, origin)| recorded_file(package, path, origin));
    let record = InstallManifest {
        schema: MANIFEST_SCHEMA.to_owned(),
        component: expected.component.to_owned(),
        version: expected.version.to_owned(),
        recipe_sha256: made.recipe,
        made_by: made.by,
        installed_at: Timestamp::now().to_string(),
        files: files.collect::<io::Result<_>>()?,
        images: made.images,
        lacks: made.lacks,
    };
    let text = serde_json::to_string_pretty(&record).map_err(io::Error::from)?;
    fs::write(package.join(MANIFEST_FILE), text + "\n")?;
    Ok(record)
}

/// Compares a directory with its record, and the record with the expectation. The error is the first flaw
/// found.
pub(super) fn check(
    package: &Path,
    expected: &Expected<'_>,
    verify: Verify,
) -> Result<InstallManifest, Flaw> {
    if fs::symlink_metadata(package).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Err(Flaw::Absent);
    }
    let path = package.join(MANIFEST_FILE);
    let bad_record = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Flaw::NoRecord,
        _ => Flaw::BadRecord(path.clone(), error),
    };
    let other = |what| bad_record(io::Error::new(io::ErrorKind::InvalidData, what));
    let text = fs::read_to_string(&path).map_err(bad_record)?;
    let record: InstallManifest = serde_json::from_str(&text).map_err(|error| bad_record(error.into()))?;
    if record.schema != MANIFEST_SCHEMA || record.component != expected.component {
        return Err(other("it is of something else"));
    }
    if !expected.recipes.contains(&record.recipe_sha256) {
        return Err(Flaw::OtherPins);
    }
    let required = expected.files.iter().all(|file| record.file(Path::new(file)).is_some());
    let known = record.files.iter().all(|file| {
        expected.files.iter().chain(expected.optional).any(|known| file.path == Path::new(known))
    });
    if !required || !known {
        return Err(other("it is of other files"));
    }
    for file in &record.files {
        let is_program = !expected.data.iter().any(|data| file.path == Path::new(data));
        check_file(package, file, verify, is_program)?;
    }
    Ok(record)
}

impl InstallManifest {
    pub(super) fn file(&self, path: &Path) -> Option<&RecordedFile> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(super) fn made_by(&self) -> &str {
        &self.made_by
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size_bytes).sum()
    }

    /// Image that a file was extracted from.
    pub(super) fn image_of(&self, file: &RecordedFile) -> Option<&ComponentImage> {
        let reference = file.origin.image.as_ref()?;
        self.images.iter().find(|image| image.reference == *reference)
    }
}

fn check_file(package: &Path, file: &RecordedFile, verify: Verify, is_program: bool) -> Result<(), Flaw> {
    let path = package.join(&file.path);
    let unreadable = |error| Flaw::Unreadable(path.clone(), error);
    let metadata = fs::metadata(&path).map_err(unreadable)?;
    if !metadata.is_file() || metadata.len() != file.size_bytes {
        return Err(Flaw::Changed(path));
    }
    // Build caches, among others, may restore contents without modes.
    if is_program && metadata.mode() & 0o100 == 0 {
        return Err(Flaw::NotRunnable(path, metadata.mode() & 0o777));
    }
    if verify == Verify::Quick && modified_ns(&metadata) == file.modified_ns {
        return Ok(());
    }
    let digest = sha256_of_file(&path).map_err(unreadable)?;
    if digest == file.sha256 { Ok(()) } else { Err(Flaw::Changed(path)) }
}

fn recorded_file(package: &Path, path: PathBuf, origin: FileOrigin) -> io::Result<RecordedFile> {
    let whole = package.join(&path);
    let metadata = fs::metadata(&whole)?;
    Ok(RecordedFile {
        path,
        size_bytes: metadata.len(),
        modified_ns: modified_ns(&metadata),
        sha256: sha256_of_file(&whole)?,
        origin,
    })
}

fn modified_ns(metadata: &fs::Metadata) -> i128 {
    i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec())
}

/// SHA-256, in hexadecimal, of several texts. Each is preceded by its length, so that different lists never
/// hash the same bytes.
pub fn sha256_of_texts(texts: &[&str]) -> String {
    let mut context = Context::new(&SHA256);
    for text in texts {
        context.update(&(text.len() as u64).to_be_bytes());
        context.update(text.as_bytes());
    }
    hexadecimal(context)
}

/// The record of the package that an installed file belongs to, and the file's entry in it.
pub(super) fn record_of(path: &Path) -> Option<(InstallManifest, RecordedFile)> {
    let package = path.ancestors().skip(1).find(|folder| folder.join(MANIFEST_FILE).is_file())?;
    let text = fs::read_to_string(package.join(MANIFEST_FILE)).ok()?;
    let record: InstallManifest = serde_json::from_str(&text).ok()?;
    let file = record.file(path.strip_prefix(package).ok()?)?.clone();
    Some((record, file))
}

pub(super) fn sha256_of_file(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut context = Context::new(&SHA256);
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hexadecimal(context)),
            length => context.update(&buffer[..length]),
        }
    }
}

fn hexadecimal(context: Context) -> String {
    context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::{Duration, SystemTime};

    fn expected<'a>(recipe: &str, files: &'a [&'a str]) -> Expected<'a> {
        let recipes = vec![recipe.to_owned()];
        Expected { component: "etcd", version: "3.6.8", recipes, files, optional: &[], data: &[] }
    }

    fn installed() -> tempfile::TempDir {
        let package = tempfile::tempdir().unwrap();
        let program = package.path().join("etcd");
        fs::write(&program, "program").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let files = vec![("etcd".into(), FileOrigin::default())];
        let made = Made { by: "go1.26.8".to_owned(), recipe: "recipe".to_owned(), files, ..Made::default() };
        write(package.path(), &expected("recipe", &["etcd"]), made).unwrap();
        package
    }

    fn check_etcd(package: &Path, verify: Verify) -> Result<InstallManifest, Flaw> {
        check(package, &expected("recipe", &["etcd"]), verify)
    }

    #[test]
    fn unchanged_package_passes_both_checks() {
        let package = installed();
        let record = check_etcd(package.path(), Verify::Quick).unwrap();
        assert_eq!(record, check_etcd(package.path(), Verify::Thorough).unwrap());
        // printf program | sha256sum
        let digest = "1310ca2c8932dbd118668bd97442558a3e1f546b5e15c69699dfbd6024f548d8";
        assert_eq!(record.files[0].sha256, digest);
        assert_eq!((record.version.as_str(), record.files[0].size_bytes), ("3.6.8", 7));
    }

    #[test]
    fn changed_file_is_named() {
        let package = installed();
        let file = package.path().join("etcd");
        fs::write(&file, "longer program").unwrap();
        let flaw = check_etcd(package.path(), Verify::Quick).unwrap_err();
        assert_eq!(flaw.to_string(), format!("{} has changed since it was installed", file.display()));
        fs::remove_file(&file).unwrap();
        assert!(
            check_etcd(package.path(), Verify::Quick).unwrap_err().to_string().contains("cannot be read")
        );
    }

    #[test]
    fn change_of_same_length_is_found_by_time_or_thorough_check() {
        let package = installed();
        let file = package.path().join("etcd");
        let recorded = fs::metadata(&file).unwrap().modified().unwrap();
        let set_time =
            |time: SystemTime| File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
        fs::write(&file, "PROGRAM").unwrap();
        set_time(recorded + Duration::from_secs(1));
        assert!(matches!(check_etcd(package.path(), Verify::Quick), Err(Flaw::Changed(_))));
        set_time(recorded);
        assert!(check_etcd(package.path(), Verify::Quick).is_ok());
        assert!(matches!(check_etcd(package.path(), Verify::Thorough), Err(Flaw::Changed(_))));
        // As after a copy or from an unpacked cache: the time differs, the content does not.
        fs::write(&file, "program").unwrap();
        set_time(recorded + Duration::from_secs(1));
        assert!(check_etcd(package.path(), Verify::Quick).is_ok());
    }

    #[test]
    fn non_executable_program_and_record_of_other_files_are_flaws() {
        let package = installed();
        let other = check(package.path(), &expected("recipe", &["etcd", "etcdctl"]), Verify::Quick);
        assert!(matches!(other, Err(Flaw::BadRecord(..))));
        let program = package.path().join("etcd");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).unwrap();
        let flaw = check_etcd(package.path(), Verify::Thorough).unwrap_err();
        assert_eq!(flaw.to_string(), format!("{} cannot be run: its mode is 644", program.display()));
        fs::remove_file(&program).unwrap();
        fs::create_dir(&program).unwrap();
        assert!(check_etcd(package.path(), Verify::Quick).is_err());
    }

    #[test]
    fn other_pins_and_other_records_are_distinguished() {
        let package = installed();
        assert!(matches!(
            check(package.path(), &expected("newer recipe", &["etcd"]), Verify::Quick),
            Err(Flaw::OtherPins)
        ));
        let istiod = Expected { component: "istiod", ..expected("recipe", &["etcd"]) };
        let other = check(package.path(), &istiod, Verify::Quick);
        assert!(matches!(other, Err(Flaw::BadRecord(..))));
        fs::write(package.path().join(MANIFEST_FILE), "{").unwrap();
        assert!(matches!(check_etcd(package.path(), Verify::Quick), Err(Flaw::BadRecord(..))));
        assert!(matches!(check_etcd(Path::new("/nowhere"), Verify::Quick), Err(Flaw::Absent)));
    }

    #[test]
    fn digest_of_texts_depends_on_their_boundaries() {
        assert_ne!(sha256_of_texts(&["ab", "c"]), sha256_of_texts(&["a", "bc"]));
        assert_eq!(sha256_of_texts(&["a"]), sha256_of_texts(&["a"]));
    }
}

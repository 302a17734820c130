//! Files that an experiment names, relative to the directory of the experiment file.

use crate::input;
use experiment::Files;
use experiment::file::{MAX_FILE_BYTES, nearest};
use std::fs;
use std::io::{Error, ErrorKind, Read, Result as IoResult};
use std::path::{Path, PathBuf};

/// Reads a whole text file. The size limit is that of an experiment file, because a device may never end.
///
/// # Errors
/// Returns an error if the file cannot be read, is too large, or is not UTF-8.
pub(crate) fn read_text(path: &Path) -> IoResult<String> {
    read_limited(input::open(path)?)
}

/// Reads a whole text, with the size limit of an experiment file.
///
/// # Errors
/// Returns an error if reading fails, or the text is too large or not UTF-8.
pub(crate) fn read_limited(source: impl Read) -> IoResult<String> {
    read_up_to(source, MAX_FILE_BYTES)
}

fn read_up_to(source: impl Read, most: usize) -> IoResult<String> {
    let mut bytes = Vec::new();
    source.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(Error::new(ErrorKind::FileTooLarge, format!("it has more than {} MiB", most >> 20)));
    }
    String::from_utf8(bytes).map_err(|_| Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Maximum size of a file with data, bytes.
const MAX_DATA_BYTES: usize = 64 << 20;

/// Files of a directory that are compared with a name; more are not typed by hand.
const MAX_NEIGHBOURS: usize = 1000;

/// The likely meaning of the name of a file that does not exist: something built in, by its name with or without an extension,
/// or a YAML file in the same directory.
pub(crate) fn meant<const N: usize>(name: &str, built_in: [&'static str; N]) -> Option<String> {
    let path = Path::new(name);
    let word =
        |part: Option<&std::ffi::OsStr>| part.and_then(|part| part.to_str()).unwrap_or_default().to_owned();
    let (file_name, stem) = (word(path.file_name()), word(path.file_stem()));
    let folder = path.parent().unwrap_or(Path::new(""));
    let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let is_yaml = |name: &String| name.ends_with(".yaml") || name.ends_with(".yml");
    let neighbours: Vec<String> = fs::read_dir(listed)
        .into_iter()
        .flatten()
        .take(MAX_NEIGHBOURS)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(is_yaml)
        .collect();
    nearest(name, built_in)
        .map(str::to_owned)
        .or_else(|| {
            let near = nearest(&file_name, neighbours.iter().map(String::as_str))?;
            Some(folder.join(near).display().to_string())
        })
        .or_else(|| nearest(&stem, built_in).map(str::to_owned))
}

/// Files named by an experiment or an override, relative to the directory of the experiment file. For a preset
/// study they are relative to the working directory.
pub(crate) struct FilesBeside {
    folder: PathBuf,
    max_text_bytes: usize,
}

impl FilesBeside {
    /// For the experiment named on the command line.
    pub(crate) fn experiment(named: &str) -> Self {
        let folder = Path::new(named).parent().unwrap_or(Path::new("")).to_path_buf();
        Self { folder, max_text_bytes: MAX_FILE_BYTES }
    }

    /// For the traffic named on the command line, which has data in files.
    pub(crate) fn data(named: &str) -> Self {
        Self { max_text_bytes: MAX_DATA_BYTES, ..Self::experiment(named) }
    }
}

impl Files for FilesBeside {
    fn text(&self, path: &str) -> Result<String, String> {
        let path = self.folder.join(path);
        let text = input::open(&path).and_then(|file| read_up_to(file, self.max_text_bytes));
        text.map_err(|error| format!("read {}: {error}", path.display()))
    }

    fn locate(&self, path: &str) -> Result<PathBuf, String> {
        let path = self.folder.join(path);
        let found = path.canonicalize().map_err(|error| format!("find {}: {error}", path.display()))?;
        if !found.is_file() {
            return Err(format!("{} is not a file", found.display()));
        }
        input::check(&found).map_err(|error| format!("find {}: {error}", path.display()))?;
        Ok(found)
    }

    fn locate_program(&self, path: &str) -> Result<PathBuf, String> {
        let path = self.folder.join(path);
        let error = |error: Error| format!("find {}: {error}", path.display());
        if !path.metadata().map_err(error)?.is_file() {
            return Err(format!("{} is not a file", path.display()));
        }
        std::path::absolute(&path).map_err(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn files_are_relative_to_the_experiment() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("more.yaml"), "kind: A").unwrap();
        let files = FilesBeside::experiment(folder.path().join("study.yaml").to_str().unwrap());
        assert_eq!(files.text("more.yaml").unwrap(), "kind: A");
        assert!(files.locate("more.yaml").unwrap().is_absolute());
        assert!(files.text("absent.yaml").unwrap_err().contains("absent.yaml"));
        assert!(files.locate(".").unwrap_err().ends_with("is not a file"));
    }

    #[test]
    fn program_paths_keep_symlinks() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("envoy"), "").unwrap();
        std::os::unix::fs::symlink("envoy", folder.path().join("other")).unwrap();
        let files = FilesBeside::experiment(folder.path().join("study.yaml").to_str().unwrap());
        assert_eq!(files.locate_program("other").unwrap(), folder.path().join("other"));
        assert!(files.locate_program(".").unwrap_err().ends_with("is not a file"));
        assert!(files.locate_program("absent").unwrap_err().contains("absent"));
    }

    #[test]
    fn endless_and_non_text_files_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let binary = folder.path().join("binary.yaml");
        fs::write(&binary, b"name: \xff").unwrap();
        assert_eq!(read_text(&binary).unwrap_err().to_string(), "it is not UTF-8 text");
        let endless = read_text(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(endless.to_string(), "it has more than 1 MiB");
        let largest = folder.path().join("largest.yaml");
        fs::write(&largest, "x".repeat(MAX_FILE_BYTES)).unwrap();
        assert_eq!(read_text(&largest).unwrap().len(), MAX_FILE_BYTES);
    }
}

//! The files that an experiment names: their paths count from the folder of the experiment file.

use experiment::Files;
use std::fs;
use std::path::{Path, PathBuf};

/// Files beside an experiment file. Those of a preset study, or of an override, count from here.
pub(in crate::commands) struct FilesBeside {
    folder: PathBuf,
}

impl FilesBeside {
    /// For the experiment that was named on the command line.
    pub(in crate::commands) fn experiment(named: &str) -> Self {
        Self { folder: Path::new(named).parent().unwrap_or(Path::new("")).to_path_buf() }
    }
}

impl Files for FilesBeside {
    fn text(&self, path: &str) -> Result<String, String> {
        let path = self.folder.join(path);
        fs::read_to_string(&path).map_err(|error| format!("read {}: {error}", path.display()))
    }

    fn locate(&self, path: &str) -> Result<PathBuf, String> {
        let path = self.folder.join(path);
        let found = path.canonicalize().map_err(|error| format!("find {}: {error}", path.display()))?;
        if found.is_file() { Ok(found) } else { Err(format!("{} is no file", found.display())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_looked_for_beside_the_experiment() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("more.yaml"), "kind: A").unwrap();
        let files = FilesBeside::experiment(folder.path().join("study.yaml").to_str().unwrap());
        assert_eq!(files.text("more.yaml").unwrap(), "kind: A");
        assert!(files.locate("more.yaml").unwrap().is_absolute());
        assert!(files.text("absent.yaml").unwrap_err().contains("absent.yaml"));
        assert!(files.locate(".").unwrap_err().ends_with("is no file"));
    }
}

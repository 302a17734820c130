//! Salts of hashed names. A random one is kept beside the topology, readable by its owner only: with it, names can be guessed.

use crate::cli::LearnArgs;
use crate::failure::Failure;
use crate::input;
use crate::output::tell;
use crate::random;
use learn::Anonymiser;
use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Maximum size of a file with a salt, bytes.
const MAX_FILE_BYTES: u64 = 64 * 1024;
/// Minimum size: a shorter one can be guessed.
const MIN_BYTES: usize = 8;

/// A salt that is to be kept.
pub(super) struct NewSalt {
    path: PathBuf,
    salt: String,
}

impl NewSalt {
    pub(super) fn write(&self) -> Result<(), Failure> {
        let about = |error: std::io::Error| {
            Failure::environment(&error).about(&format!("write the salt {}", self.path.display()))
        };
        // A link that leads nowhere is no salt, and is not followed.
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.path).map_err(about)?;
        file.write_all(self.salt.as_bytes()).map_err(about)?;
        tell!(
            "salt of the names: {}; keep it to yourself: with it, names can be guessed",
            self.path.display()
        );
        Ok(())
    }
}

/// Anonymiser that the options ask for, and its salt if it is new. A salt beside the topology is used again.
pub(super) fn anonymiser(
    args: &LearnArgs,
    topology: Option<&Path>,
) -> Result<(Option<Anonymiser>, Option<NewSalt>), Failure> {
    if !args.anonymise {
        return Ok((None, None));
    }
    let beside = topology.map(|path| path.with_extension("salt"));
    if let Some(path) = args.salt.as_ref().or(beside.as_ref().filter(|path| path.exists())) {
        return Ok((Some(Anonymiser::new(&read(path)?)), None));
    }
    let salt = random::secret().map_err(|failure| failure.about("draw a salt"))?;
    let anonymiser = Anonymiser::new(salt.as_bytes());
    Ok((Some(anonymiser), beside.map(|path| NewSalt { path, salt })))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let unusable = |reason: &str| Failure::usage(format!("read the salt `{}`: {reason}", path.display()));
    let file = input::open(path).map_err(|error| unusable(&error.to_string()))?;
    let mut salt = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut salt).map_err(|error| unusable(&error.to_string()))?;
    let salt = salt.trim_ascii().to_vec();
    match salt.len() {
        0..MIN_BYTES => Err(unusable("a salt has at least 8 bytes")),
        length if length as u64 > MAX_FILE_BYTES => Err(unusable("it has more than 64 KiB")),
        _ => Ok(salt),
    }
}

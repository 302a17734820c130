//! Files that request bodies and messages come from.

use crate::failure::Failure;
use crate::input;
use std::io::Read as _;
use std::path::Path;

/// Reads request content from a file.
pub fn read_file(content: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    input::open(path)
        .and_then(|file| file.take(load::MAX_BODY_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| Failure::usage(format!("read {content} from `{}`: {error}", path.display())))?;
    if bytes.len() as u64 > load::MAX_BODY_BYTES {
        return Err(Failure::usage(format!("{content} in `{}` is larger than 64 MiB", path.display())));
    }
    Ok(bytes)
}

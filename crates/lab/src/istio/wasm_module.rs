//! The WebAssembly module that an experiment names, made readable for its proxies.

use crate::Result;
use crate::lab::Lab;
use experiment::environment::{EnvironmentError, ErrorContext};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// First bytes of every module: magic number and format version (WebAssembly core specification, 5.5.16).
const PREAMBLE: &[u8] = b"\0asm\x01\0\0\0";

pub(crate) fn give_to_proxies(lab: &Lab, file: &Path) -> Result<PathBuf> {
    let operation = format!("read {}", file.display());
    let begins = beginning(file).context(operation.clone())?;
    if begins != PREAMBLE {
        return Err(EnvironmentError::new(operation, "it is no WebAssembly module")
            .with_hint("`istio.wasm` names a module in binary form, as compilers write it"));
    }
    lab.expose_file(file)
}

fn beginning(file: &Path) -> io::Result<Vec<u8>> {
    let mut begins = Vec::new();
    File::open(file)?.take(PREAMBLE.len() as u64).read_to_end(&mut begins)?;
    Ok(begins)
}

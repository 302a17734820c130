//! Descriptors from files: `.proto` sources, compiled here, and precompiled descriptor sets.

use crate::descriptors::add_set;
use crate::error::DescribeError;
use prost_reflect::DescriptorPool;
use std::error::Error;
use std::fmt;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Maximum size of a descriptor set, bytes.
const MAX_SET_BYTES: u64 = 64 * 1024 * 1024;

/// Error in a `.proto` file, with its place.
#[derive(Debug)]
pub struct SourceError(protox::Error);

impl fmt::Display for SourceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The library only reports file, line and column in its debug output.
        write!(formatter, "{:?}", self.0)
    }
}

impl Error for SourceError {}

/// Compiles `.proto` files with their imports.
pub(crate) fn compile(files: &[PathBuf], folders: &[PathBuf]) -> Result<DescriptorPool, DescribeError> {
    let parents = files.iter().filter_map(|file| file.parent());
    let own = || parents.map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    let folders: Vec<&Path> = if folders.is_empty() {
        // The current directory comes first: file names and imports are mostly relative to it.
        std::iter::once(Path::new(".")).chain(own()).collect()
    } else {
        folders.iter().map(PathBuf::as_path).collect()
    };
    let compile_error = |file: &Path| {
        let file = file.to_owned();
        move |cause: protox::Error| DescribeError::Proto { file, cause: SourceError(cause) }
    };
    let mut compiler = protox::Compiler::new(&folders).map_err(compile_error(Path::new(".")))?;
    for file in files {
        // Checked here for a better message: the compiler would refer to import paths.
        fs::metadata(file).map_err(|cause| DescribeError::Read { file: file.clone(), cause })?;
        compiler.open_file(file).map_err(compile_error(file))?;
    }
    Ok(compiler.descriptor_pool())
}

/// Reads descriptor sets. If several contain the same file, the first one is used.
pub(crate) fn read_sets(files: &[PathBuf]) -> Result<DescriptorPool, DescribeError> {
    let mut pool = DescriptorPool::new();
    for file in files {
        let bytes = read(file).map_err(|cause| DescribeError::Read { file: file.clone(), cause })?;
        add_set(&mut pool, &bytes).map_err(|cause| DescribeError::Protoset { file: file.clone(), cause })?;
    }
    Ok(pool)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MAX_SET_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_SET_BYTES {
        return Err(io::Error::other("it is larger than 64 MiB"));
    }
    Ok(bytes)
}

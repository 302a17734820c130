//! Descriptions in files: `.proto` sources, compiled here, and sets of descriptors that were compiled elsewhere.

use crate::error::DescribeError;
use prost_reflect::DescriptorPool;
use std::error::Error;
use std::fmt;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Longest set of descriptors that is read.
const MAX_SET_BYTES: u64 = 64 * 1024 * 1024;

/// What is wrong with a `.proto` file, with the place.
#[derive(Debug)]
pub struct SourceError(protox::Error);

impl fmt::Display for SourceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // This library has the file, line and column only here.
        write!(formatter, "{:?}", self.0)
    }
}

impl Error for SourceError {}

/// Compiles `.proto` files with what they import.
pub(crate) fn compile(files: &[PathBuf], folders: &[PathBuf]) -> Result<DescriptorPool, DescribeError> {
    let parents = files.iter().filter_map(|file| file.parent());
    let own = || parents.map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    let folders: Vec<&Path> = if folders.is_empty() {
        // The current folder first: files are mostly named, and import each other, from there.
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
        // Said here, since the compiler would speak of folders of imports.
        fs::metadata(file).map_err(|cause| DescribeError::Read { file: file.clone(), cause })?;
        compiler.open_file(file).map_err(compile_error(file))?;
    }
    Ok(compiler.descriptor_pool())
}

/// Reads compiled sets; where several have a file, the first one counts.
pub(crate) fn read_sets(files: &[PathBuf]) -> Result<DescriptorPool, DescribeError> {
    let mut pool = DescriptorPool::new();
    for file in files {
        let bytes = read(file).map_err(|cause| DescribeError::Read { file: file.clone(), cause })?;
        pool.decode_file_descriptor_set(&bytes[..])
            .map_err(|cause| DescribeError::Protoset { file: file.clone(), cause })?;
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

//! Addresses of servers: IP addresses with ports, and unix sockets.

use rustix::fs::{Access, access};
use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum length of a unix socket's path, bytes: `sun_path` without its final NUL (unix(7)).
const MAX_PATH_BYTES: usize = 107;

/// Address of a server.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Address {
    /// IP address and port.
    Ip(SocketAddr),
    /// Path of a unix stream socket.
    Unix(Arc<Path>),
}

impl Address {
    /// The unix socket at `path`.
    ///
    /// # Errors
    /// Returns an error if this process cannot connect to a socket there. Whether a server listens is seen by connecting.
    pub fn unix_socket(path: &Path) -> Result<Self, UnixSocketError> {
        let shown = || path.to_owned();
        let bytes = path.as_os_str().as_bytes().len();
        if bytes > MAX_PATH_BYTES {
            return Err(UnixSocketError::TooLong { path: shown(), bytes });
        }
        let found = fs::metadata(path).map_err(|cause| UnixSocketError::NotFound { path: shown(), cause })?;
        if !found.file_type().is_socket() {
            return Err(UnixSocketError::NotASocket(shown()));
        }
        access(path, Access::WRITE_OK)
            .map_err(|cause| UnixSocketError::Denied { path: shown(), cause: cause.into() })?;
        Ok(Self::Unix(path.into()))
    }

    /// The IP address and port; `None` for a unix socket.
    #[must_use]
    pub fn ip(&self) -> Option<SocketAddr> {
        match self {
            Self::Ip(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }
}

/// Number of addresses, from the first, that are of its family; at least 1.
pub(crate) fn spread(addresses: &[Address]) -> usize {
    let is_ipv4 = |address: &Address| address.ip().map(|ip| ip.is_ipv4());
    let first = addresses.first().map(is_ipv4);
    addresses.iter().take_while(|address| Some(is_ipv4(address)) == first).count().max(1)
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Ip(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A path that is not that of a usable unix socket.
#[derive(Debug, thiserror::Error)]
pub enum UnixSocketError {
    /// The kernel's addresses have no room for it.
    #[error(
        "the path of the unix socket `{}` has {bytes} bytes, and the kernel takes at most {MAX_PATH_BYTES}",
        path.display()
    )]
    TooLong {
        /// As given.
        path: PathBuf,
        /// Length of the path.
        bytes: usize,
    },
    /// Nothing is there, or a directory on the way cannot be searched.
    #[error("find the unix socket `{}`", path.display())]
    NotFound {
        /// As given.
        path: PathBuf,
        /// The kernel's error.
        #[source]
        cause: io::Error,
    },
    /// Another kind of file.
    #[error("`{}` is not a unix socket", .0.display())]
    NotASocket(PathBuf),
    /// Connecting requires the right to write to the socket.
    #[error("connect to the unix socket `{}`", path.display())]
    Denied {
        /// As given.
        path: PathBuf,
        /// The kernel's error.
        #[source]
        cause: io::Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn unusable_paths_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let (socket, file) = (folder.path().join("socket"), folder.path().join("file"));
        let _listener = UnixListener::bind(&socket).unwrap();
        fs::write(&file, "").unwrap();
        let found = Address::unix_socket(&socket).unwrap();
        assert_eq!(found.to_string(), format!("unix:{}", socket.display()));
        let error = |path: &Path| Address::unix_socket(path).unwrap_err();
        assert!(matches!(error(&file), UnixSocketError::NotASocket(_)));
        assert!(matches!(error(&folder.path().join("absent")), UnixSocketError::NotFound { .. }));
        let long = PathBuf::from(format!("/{}", "x".repeat(MAX_PATH_BYTES)));
        assert!(error(&long).to_string().contains("108 bytes"), "{}", error(&long));
        assert!(matches!(
            error(&PathBuf::from("x".repeat(MAX_PATH_BYTES))),
            UnixSocketError::NotFound { .. }
        ));
    }
}

//! The I/O interface of a run's connections: chosen once, for all threads, before anything is measured.

use super::uring::Ring;
use crate::error::LoadError;
use results::GeneratorNetwork;
use std::io;

/// Kernel I/O interface of the generator's connections.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum IoBackendChoice {
    /// io_uring in a closed loop, if the kernel lets this process use it; epoll otherwise. In an open loop a
    /// thread mostly waits, and epoll wakes it sooner and at a lower cost (docs/decisions/0007-io-uring.md).
    #[default]
    Auto,
    /// io_uring; an error if it is not available.
    IoUring,
    /// epoll.
    Epoll,
}

/// What the network of one thread is built on.
#[derive(Debug)]
pub(crate) enum IoBackend {
    IoUring(Box<Ring>),
    Epoll,
}

/// Creates one per thread, all of one kind. `closed_loop`: each response triggers the next request. Fails if
/// the kernel does not allow what was chosen.
pub(crate) fn io_backends(
    choice: IoBackendChoice,
    threads: usize,
    closed_loop: bool,
) -> Result<(GeneratorNetwork, Vec<IoBackend>), LoadError> {
    let choice =
        if choice == IoBackendChoice::Auto && !closed_loop { IoBackendChoice::Epoll } else { choice };
    choose(choice, threads, || Ok(IoBackend::IoUring(Box::new(Ring::new()?))))
}

/// Like [`io_backends`], with a constructor for the io_uring ones.
fn choose(
    choice: IoBackendChoice,
    threads: usize,
    io_uring: impl Fn() -> io::Result<IoBackend>,
) -> Result<(GeneratorNetwork, Vec<IoBackend>), LoadError> {
    let io_uring = || (0..threads).map(|_| io_uring()).collect::<io::Result<_>>();
    let epoll = || (0..threads).map(|_| IoBackend::Epoll).collect();
    Ok(match choice {
        IoBackendChoice::IoUring => (GeneratorNetwork::IoUring, io_uring().map_err(LoadError::IoUring)?),
        IoBackendChoice::Epoll => (GeneratorNetwork::Epoll, epoll()),
        IoBackendChoice::Auto => match io_uring() {
            Ok(io_backends) => (GeneratorNetwork::IoUring, io_backends),
            Err(_) => (GeneratorNetwork::Epoll, epoll()),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;
    use std::cell::Cell;

    #[test]
    fn open_loop_uses_epoll_unless_io_uring_is_requested() {
        let chosen = |choice| io_backends(choice, 1, false).expect("io_uring is allowed here").0;
        assert_eq!(chosen(IoBackendChoice::Auto), GeneratorNetwork::Epoll);
        assert_eq!(chosen(IoBackendChoice::IoUring), GeneratorNetwork::IoUring);
    }

    #[test]
    fn auto_uses_epoll_for_all_threads_if_io_uring_is_unavailable() {
        // The first thread could have it, the second one could not.
        let asked = Cell::new(0);
        let refuse = || {
            asked.set(asked.get() + 1);
            if asked.get() == 1 {
                Ok(IoBackend::IoUring(Box::new(Ring::new()?)))
            } else {
                Err(Errno::NOMEM.into())
            }
        };
        let (network, io_backends) = choose(IoBackendChoice::Auto, 2, refuse).expect("epoll is always there");
        assert_eq!(network, GeneratorNetwork::Epoll);
        assert!(matches!(io_backends[..], [IoBackend::Epoll, IoBackend::Epoll]), "{io_backends:?}");
        assert_eq!(asked.get(), 2);
    }

    #[test]
    fn requested_io_uring_unavailable_is_error_with_hint() {
        for (errno, hint) in [
            (Errno::PERM, "seccomp"),
            (Errno::NOSYS, "seccomp"),
            (Errno::INVAL, "Linux 6.1"),
            (Errno::NOMEM, "ulimit -l"),
        ] {
            let error =
                choose(IoBackendChoice::IoUring, 1, || Err(errno.into())).expect_err("it was refused");
            assert_eq!(error.to_string(), "use io_uring");
            assert!(error.hint().is_some_and(|text| text.contains(hint)), "{errno}: {:?}", error.hint());
        }
    }
}

//! What a run's connections stand on: decided once, for all of its threads, before anything is measured.

use super::uring::Ring;
use crate::error::LoadError;
use experiment::schema::GeneratorNetwork;
use std::io;

/// What the generator's connections are to stand on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum NetworkChoice {
    /// In a closed loop io_uring where the kernel lets this process use it; in an open loop, and else, epoll: a thread that
    /// mostly waits is woken sooner and cheaper there (docs/decisions/0007-io-uring.md).
    #[default]
    Auto,
    /// io_uring or nothing.
    IoUring,
    /// epoll.
    Epoll,
}

/// What the network of one thread is made on.
#[derive(Debug)]
pub(crate) enum Foundation {
    IoUring(Box<Ring>),
    Epoll,
}

/// One for each of so many threads, all of one kind. `closed_loop`: each answer brings the next request.
///
/// # Errors
/// Where the kernel refuses what was chosen.
pub(crate) fn foundations(
    choice: NetworkChoice,
    threads: usize,
    closed_loop: bool,
) -> Result<(GeneratorNetwork, Vec<Foundation>), LoadError> {
    let choice = if choice == NetworkChoice::Auto && !closed_loop { NetworkChoice::Epoll } else { choice };
    choose(choice, threads, || Ok(Foundation::IoUring(Box::new(Ring::new()?))))
}

/// The same, with what makes one on io_uring.
fn choose(
    choice: NetworkChoice,
    threads: usize,
    io_uring: impl Fn() -> io::Result<Foundation>,
) -> Result<(GeneratorNetwork, Vec<Foundation>), LoadError> {
    let io_uring = || (0..threads).map(|_| io_uring()).collect::<io::Result<_>>();
    let epoll = || (0..threads).map(|_| Foundation::Epoll).collect();
    Ok(match choice {
        NetworkChoice::IoUring => (GeneratorNetwork::IoUring, io_uring().map_err(LoadError::IoUring)?),
        NetworkChoice::Epoll => (GeneratorNetwork::Epoll, epoll()),
        NetworkChoice::Auto => match io_uring() {
            Ok(foundations) => (GeneratorNetwork::IoUring, foundations),
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
    fn an_open_loop_stands_on_epoll_unless_io_uring_is_asked_for_by_name() {
        let chosen = |choice| foundations(choice, 1, false).expect("io_uring is allowed here").0;
        assert_eq!(chosen(NetworkChoice::Auto), GeneratorNetwork::Epoll);
        assert_eq!(chosen(NetworkChoice::IoUring), GeneratorNetwork::IoUring);
    }

    #[test]
    fn where_io_uring_is_refused_auto_takes_epoll_for_every_thread() {
        // The first thread could have it, the second one not.
        let asked = Cell::new(0);
        let refuse = || {
            asked.set(asked.get() + 1);
            if asked.get() == 1 {
                Ok(Foundation::IoUring(Box::new(Ring::new()?)))
            } else {
                Err(Errno::NOMEM.into())
            }
        };
        let (network, foundations) = choose(NetworkChoice::Auto, 2, refuse).expect("epoll is always there");
        assert_eq!(network, GeneratorNetwork::Epoll);
        assert!(matches!(foundations[..], [Foundation::Epoll, Foundation::Epoll]), "{foundations:?}");
        assert_eq!(asked.get(), 2);
    }

    #[test]
    fn where_io_uring_is_asked_for_by_name_a_refusal_says_what_to_do() {
        for (errno, hint) in [
            (Errno::PERM, "seccomp"),
            (Errno::NOSYS, "seccomp"),
            (Errno::INVAL, "Linux 6.1"),
            (Errno::NOMEM, "ulimit -l"),
        ] {
            let error = choose(NetworkChoice::IoUring, 1, || Err(errno.into())).expect_err("it was refused");
            assert_eq!(error.to_string(), "use io_uring");
            assert!(error.hint().is_some_and(|text| text.contains(hint)), "{errno}: {:?}", error.hint());
        }
    }
}

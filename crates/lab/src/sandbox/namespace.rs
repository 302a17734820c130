//! A network namespace held by a thread that lives in it. The thread serves three purposes. Its work happens
//! inside the namespace, since namespaces belong to threads. Its child processes start there, without a
//! switch between fork and exec. And they have the kernel kill them when their parent ends
//! (`PR_SET_PDEATHSIG`), which the kernel ties to the spawning *thread*: this one ends exactly when the pod
//! does.

use crate::Result;
use crate::sandbox::interface::{Interface, POD_INTERFACE};
use crate::sandbox::permission;
use confinement::unshare;
use experiment::environment::{EnvironmentError, ErrorContext as _};
use rustix::fs::{Mode, OFlags};
use rustix::mount::MountPropagationFlags;
use rustix::thread::UnshareFlags;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

type Task = Box<dyn FnOnce() + Send>;

#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
    /// Absent once the namespace is closed.
    thread: Mutex<Option<(mpsc::Sender<Task>, JoinHandle<()>)>>,
    files: Files,
}

#[derive(Debug)]
struct Files {
    network: OwnedFd,
    /// Present if the thread has its own mount namespace.
    mounts: Option<OwnedFd>,
    interface: Interface,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Origin {
    New,
    /// A new network namespace with its own mounts. It sees what the lab mounts later, but not the other way
    /// round.
    NewWithMounts,
    Process,
}

impl Namespace {
    pub(crate) fn open(name: &str, origin: Origin) -> Result<Self> {
        let operation = format!("make the network namespace of {name}");
        let (tasks, received) = mpsc::channel::<Task>();
        let (ready, is_ready) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name(format!("net {name}"))
            .spawn(move || {
                let opened = open_in_this_thread(origin);
                let failed = opened.is_err();
                if ready.send(opened).is_err() || failed {
                    return;
                }
                for task in received {
                    task();
                }
            })
            .context(operation.clone())?;
        let files = is_ready
            .recv()
            .context(operation.clone())?
            .map_err(|error| permission::refused(&operation, error))?;
        Ok(Self { name: name.to_owned(), thread: Mutex::new(Some((tasks, thread))), files })
    }

    /// File that identifies the namespace to other processes and in netlink messages.
    pub(crate) fn file(&self) -> &OwnedFd {
        &self.files.network
    }

    pub(crate) fn mounts_file(&self) -> Option<&OwnedFd> {
        self.files.mounts.as_ref()
    }

    pub(crate) fn interface(&self) -> &Interface {
        &self.files.interface
    }

    /// Runs `work` in the namespace and returns its result. Must not be called from within the namespace's
    /// thread.
    pub(crate) fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let gone = || {
            EnvironmentError::new(
                format!("work in the network namespace of {}", self.name),
                "its thread has ended",
            )
        };
        let (answer, answered) = mpsc::channel();
        let task: Task = Box::new(move || {
            // There is no receiver only if the caller itself was unwound.
            let _ = answer.send(work());
        });
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let (tasks, _) = thread.as_ref().ok_or_else(gone)?;
        tasks.send(task).map_err(|_| gone())?;
        drop(thread);
        answered.recv().map_err(|_| gone())
    }

    /// Ends the thread. The kernel then kills the processes that it spawned, and frees the namespace once no
    /// process is left in it.
    pub(crate) fn close(&self) {
        let open = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((tasks, thread)) = open {
            drop(tasks);
            // A task's panic has already been reported to its sender.
            let _ = thread.join();
        }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.close();
    }
}

fn open_in_this_thread(origin: Origin) -> io::Result<Files> {
    match origin {
        Origin::Process => {}
        Origin::New => unshare(UnshareFlags::NEWNET)?,
        Origin::NewWithMounts => {
            unshare(UnshareFlags::NEWNET | UnshareFlags::NEWNS)?;
            let downstream = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
            rustix::mount::mount_change("/", downstream)?;
        }
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let open = |name: &str| rustix::fs::open(format!("/proc/thread-self/ns/{name}"), flags, Mode::empty());
    let mounts = (origin == Origin::NewWithMounts).then(|| open("mnt")).transpose()?;
    Ok(Files { network: open("net")?, mounts, interface: Interface::of_this_thread(POD_INTERFACE)? })
}

//! The file system of a confined process: an empty one, in which it finds what it needs of the machine's.
//!
//! The steps are prepared beforehand, since between fork and exec a process may only make system calls.

use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::thread::UnshareFlags;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Files of the machine that a process sees, at the paths that they have there, beside the system's programs
/// and libraries.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Programs, other files and directories.
    pub readable: Vec<PathBuf>,
    /// Files and directories; the machine's own are changed.
    pub writable: Vec<PathBuf>,
}

/// Programs and libraries. On most distributions all but the first are links to it.
const PROGRAMS: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];

/// Files that programs and libraries look up. Keys and passwords of the machine are not among them.
const SETTINGS: [&str; 22] = [
    "/etc/alternatives",
    "/etc/ca-certificates/extracted",
    "/etc/ethertypes",
    "/etc/gai.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/iproute2",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
];

/// Files of `/proc` that user 0 could change without capabilities. The others must be writable: programs name their threads there.
const KERNEL_SETTINGS: [&str; 7] =
    ["/proc/acpi", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/scsi", "/proc/sys", "/proc/sysrq-trigger"];

/// Sources of runtimes for CPUs, page sizes and the limits of their control group.
const SYSTEM: [&str; 4] = [
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
];

const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

const LINKS: [(&str, &str); 5] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/var/run", "../run"),
];

/// Names of the users that a process may run as, in place of the machine's.
const USERS: &[u8] =
    b"root:x:0:0::/:\nmeshmeter:x:1337:1337::/:\nnonroot:x:65532:65532::/:\nnobody:x:65534:65534::/:\n";
const GROUPS: &[u8] = b"root:x:0:\nmeshmeter:x:1337:\nnonroot:x:65532:\nnobody:x:65534:\n";

/// Directory that the new file system is mounted on until it is the root. It exists wherever this can work.
const MOUNT_POINT: &CStr = c"/proc";
/// Path of the machine's root while files of it are mounted.
const MACHINE: &str = "/.machine";

/// One change of the new file system. Sources of the machine begin with [`MACHINE`].
#[derive(Debug)]
enum Step {
    Directory(CString),
    File(CString, &'static [u8]),
    Link { at: CString, target: CString },
    Bind { source: CString, at: CString, access: Access },
    Memory { at: CString, options: &'static CStr },
    Processes(CString),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Access {
    Read,
    Write,
    Device,
}

/// The prepared file system.
#[derive(Debug)]
pub(crate) struct Root {
    steps: Vec<Step>,
    directory: CString,
}

impl Root {
    /// The file system for this view. `directory` becomes the process's working directory.
    pub fn new(view: &View, directory: &Path) -> io::Result<Self> {
        let mut plan = Plan::default();
        plan.memory("/tmp", c"mode=1777,size=64m")?;
        plan.memory("/dev/shm", c"mode=1777,size=64m")?;
        plan.directory(Path::new("/run"))?;
        plan.directory(Path::new("/proc"))?;
        plan.steps.push(Step::Processes(path_string(Path::new("/proc"))?));
        for path in KERNEL_SETTINGS {
            plan.make_read_only(Path::new(path))?;
        }
        for path in PROGRAMS {
            plan.program_directory(Path::new(path))?;
        }
        for path in SETTINGS.iter().chain(&SYSTEM) {
            plan.bind_if_there(Path::new(path), Access::Read)?;
        }
        for path in DEVICES {
            plan.bind(Path::new(path), Access::Device)?;
        }
        for (at, target) in LINKS {
            plan.link(Path::new(at), target.into())?;
        }
        plan.file("/etc/passwd", USERS)?;
        plan.file("/etc/group", GROUPS)?;
        for path in &view.readable {
            plan.bind(path, Access::Read)?;
        }
        for path in &view.writable {
            plan.bind(path, Access::Write)?;
        }
        Ok(Self { steps: plan.steps, directory: path_string(directory)? })
    }

    /// Gives the calling process a mount namespace with this file system only. Needs CAP_SYS_ADMIN, and a
    /// process without other threads. Makes only system calls. `failing` is told the number of a step that
    /// fails ([`Self::step`]).
    pub fn enter(&self, failing: impl FnOnce(usize)) -> io::Result<()> {
        let umask = rustix::process::umask(Mode::empty());
        crate::unshare(UnshareFlags::NEWNS | UnshareFlags::NEWIPC)?;
        rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        rustix::mount::mount("meshmeter", MOUNT_POINT, "tmpfs", flags, c"mode=0755,size=1m")?;
        rustix::process::chdir(MOUNT_POINT)?;
        rustix::fs::mkdir(c".machine", Mode::from_raw_mode(0o755))?;
        rustix::process::pivot_root(c".", c".machine")?;
        rustix::process::chdir(c"/")?;
        for (number, step) in self.steps.iter().enumerate() {
            if let Err(error) = step.take() {
                failing(number);
                return Err(error);
            }
        }
        rustix::mount::unmount(c"/.machine", UnmountFlags::DETACH)?;
        rustix::fs::rmdir(c"/.machine")?;
        restrict(c"/", Access::Read, Extent::Mount)?;
        rustix::process::chdir(self.directory.as_c_str())?;
        rustix::process::umask(umask);
        Ok(())
    }

    /// Description of a step, for a message.
    pub fn step(&self, number: usize) -> Option<String> {
        self.steps.get(number).map(|step| format!("{step:?}"))
    }
}

impl Step {
    fn take(&self) -> io::Result<()> {
        match self {
            Self::Directory(at) => match rustix::fs::mkdir(at, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
                Err(error) => Err(error.into()),
            },
            Self::File(at, content) => {
                let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
                let file = rustix::fs::open(at, flags, Mode::from_raw_mode(0o644))?;
                rustix::io::write(&file, content)?;
                Ok(())
            }
            Self::Link { at, target } => Ok(rustix::fs::symlink(target, at)?),
            Self::Bind { source, at, access } => {
                rustix::mount::mount_bind_recursive(source, at)?;
                restrict(at, *access, Extent::Tree)
            }
            Self::Memory { at, options } => {
                let flags = MountFlags::NOSUID | MountFlags::NODEV;
                Ok(rustix::mount::mount("meshmeter", at, "tmpfs", flags, *options)?)
            }
            Self::Processes(at) => {
                let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
                // Processes that it may not trace do not exist in it: the first one has more rights.
                Ok(rustix::mount::mount("proc", at, "proc", flags, c"hidepid=ptraceable")?)
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Extent {
    Mount,
    /// A mount and those below it.
    Tree,
}

#[allow(unsafe_code)]
fn restrict(at: &CStr, access: Access, extent: Extent) -> io::Result<()> {
    let always = libc::MOUNT_ATTR_NOSUID;
    let set = match access {
        Access::Read => always | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_RDONLY,
        Access::Write => always | libc::MOUNT_ATTR_NODEV,
        Access::Device => always | libc::MOUNT_ATTR_NOEXEC,
    };
    let flags = match extent {
        Extent::Mount => 0,
        Extent::Tree => libc::AT_RECURSIVE,
    };
    let attributes = libc::mount_attr { attr_set: set, attr_clr: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: the kernel reads a string that ends with zero and a structure of this size, both of which outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            at.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Steps so far, and the paths that they made.
#[derive(Default)]
struct Plan {
    steps: Vec<Step>,
    directories: BTreeSet<PathBuf>,
    /// Directories of the machine that are mounted with all that is in them.
    mounted: BTreeSet<PathBuf>,
}

impl Plan {
    /// A directory with its parents.
    fn directory(&mut self, path: &Path) -> io::Result<()> {
        let missing: Vec<&Path> = path
            .ancestors()
            .take_while(|path| path.parent().is_some() && !self.directories.contains(*path))
            .collect();
        for path in missing.into_iter().rev() {
            self.steps.push(Step::Directory(path_string(path)?));
            self.directories.insert(path.to_owned());
        }
        Ok(())
    }

    fn parent(&mut self, path: &Path) -> io::Result<()> {
        path.parent().map_or(Ok(()), |parent| self.directory(parent))
    }

    fn file(&mut self, at: &str, content: &'static [u8]) -> io::Result<()> {
        self.parent(Path::new(at))?;
        self.steps.push(Step::File(path_string(Path::new(at))?, content));
        Ok(())
    }

    fn link(&mut self, at: &Path, target: PathBuf) -> io::Result<()> {
        self.parent(at)?;
        let target = c_string(target.into_os_string().into_vec())?;
        self.steps.push(Step::Link { at: path_string(at)?, target });
        Ok(())
    }

    fn memory(&mut self, at: &str, options: &'static CStr) -> io::Result<()> {
        self.directory(Path::new(at))?;
        self.steps.push(Step::Memory { at: path_string(Path::new(at))?, options });
        Ok(())
    }

    /// A directory of the system, or the link that the distribution has in its place.
    fn program_directory(&mut self, path: &Path) -> io::Result<()> {
        match fs::read_link(path) {
            Ok(target) => self.link(path, target),
            Err(_) => self.bind_if_there(path, Access::Read),
        }
    }

    fn bind_if_there(&mut self, path: &Path, access: Access) -> io::Result<()> {
        if path.exists() { self.bind(path, access) } else { Ok(()) }
    }

    /// Mounts a file or directory at its path, and at its path without links if that differs.
    fn bind(&mut self, path: &Path, access: Access) -> io::Result<()> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let source = fs::canonicalize(path).map_err(named)?;
        let is_directory = fs::metadata(&source).map_err(named)?.is_dir();
        let places: BTreeSet<&Path> = [path, &source].into();
        // Settings are read at the path that programs know.
        let at_both = access != Access::Device && !path.starts_with("/etc");
        for place in places.into_iter().filter(|place| at_both || *place == path) {
            if access == Access::Read && self.is_mounted(place) {
                continue;
            }
            if is_directory {
                self.directory(place)?;
                self.mounted.insert(place.to_owned());
            } else {
                self.parent(place)?;
                self.steps.push(Step::File(path_string(place)?, b""));
            }
            let (source, at) = (
                c_string([MACHINE.as_bytes(), source.as_os_str().as_bytes()].concat())?,
                path_string(place)?,
            );
            self.steps.push(Step::Bind { source, at, access });
        }
        Ok(())
    }

    /// Mounts a path of the new file system over itself, if the kernel has it.
    fn make_read_only(&mut self, path: &Path) -> io::Result<()> {
        if path.exists() {
            let (source, at) = (path_string(path)?, path_string(path)?);
            self.steps.push(Step::Bind { source, at, access: Access::Read });
        }
        Ok(())
    }

    fn is_mounted(&self, path: &Path) -> bool {
        path.ancestors().any(|path| self.mounted.contains(path))
    }
}

fn path_string(path: &Path) -> io::Result<CString> {
    c_string(path.as_os_str().as_bytes().to_vec())
}

fn c_string(bytes: Vec<u8>) -> io::Result<CString> {
    CString::new(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a path contains a zero byte"))
}

//! A hostile program: it tries what a confined program must not be able to do.

use rustix::fs::Mode;
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::process::{Pid, Signal};
use rustix::thread::UnshareFlags;
use std::fs;
use std::io;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Attempt and its result.
type Attempt<'a> = (&'static str, Box<dyn Fn() -> io::Result<()> + 'a>);

/// Names of the attempts that succeeded. `socket` listens on the machine, and `secret` is a file there. A
/// confined process can do none of these things.
pub fn intrude(socket: &Path, secret: &Path) -> Vec<&'static str> {
    let attempts: Vec<Attempt<'_>> = vec![
        ("read /etc/shadow", Box::new(|| fs::read("/etc/shadow").map(drop))),
        ("read a file of the machine", Box::new(|| fs::read(secret).map(drop))),
        ("list a directory of the machine", Box::new(|| list_parent_of(secret))),
        ("write to /etc", Box::new(|| fs::write("/etc/intruder", ""))),
        ("change /etc/passwd", Box::new(|| append("/etc/passwd"))),
        ("write to /usr", Box::new(|| fs::write("/usr/intruder", ""))),
        ("write to /", Box::new(|| fs::write("/intruder", ""))),
        ("change its own program", Box::new(|| append(std::env::current_exe()?))),
        ("connect to a socket of the machine", Box::new(|| UnixStream::connect(socket).map(drop))),
        ("set a variable of the kernel", Box::new(|| append("/proc/sys/kernel/core_pattern"))),
        ("request something of the kernel", Box::new(|| append("/proc/sysrq-trigger"))),
        ("change a control group", Box::new(|| fs::create_dir("/sys/fs/cgroup/intruder"))),
        ("see other processes", Box::new(see_others)),
        ("mount", Box::new(mount)),
        ("unmount", Box::new(|| Ok(rustix::mount::unmount("/proc", UnmountFlags::DETACH)?))),
        ("make a writable /usr", Box::new(remount)),
        ("make a user namespace", Box::new(|| unshare(UnshareFlags::NEWUSER))),
        ("make a mount namespace", Box::new(|| unshare(UnshareFlags::NEWNS))),
        ("change the root", Box::new(|| Ok(rustix::process::chroot("/tmp")?))),
        ("make a device", Box::new(make_device)),
        ("signal other processes", Box::new(signal_others)),
        ("trace the process that started it", Box::new(trace_parent)),
        ("load a module", Box::new(|| system_call(libc::SYS_init_module, [0; 4]))),
        ("load another kernel", Box::new(|| system_call(libc::SYS_kexec_load, [0; 4]))),
        ("read the kernel's messages", Box::new(|| fs::read("/dev/kmsg").map(drop))),
        ("be traced", Box::new(|| system_call(libc::SYS_ptrace, [0; 4]))),
        ("keep a key", Box::new(keep_key)),
        ("make a ring", Box::new(|| rejected_as_unknown(libc::SYS_io_uring_setup))),
        ("count events", Box::new(|| rejected_as_unknown(libc::SYS_perf_event_open))),
        ("open a map of the kernel", Box::new(|| rejected_as_unknown(libc::SYS_bpf))),
        ("join a namespace", Box::new(|| rejected_as_unknown(libc::SYS_setns))),
    ];
    attempts.iter().filter(|(_, attempt)| attempt().is_ok()).map(|(name, _)| *name).collect()
}

/// True if a connection to this port of the machine's loopback is accepted.
pub fn reaches_network(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

fn append(path: impl AsRef<Path>) -> io::Result<()> {
    fs::OpenOptions::new().append(true).open(path).map(drop)
}

fn list_parent_of(secret: &Path) -> io::Result<()> {
    let names: Vec<_> = fs::read_dir(secret.parent().unwrap_or(secret))?.collect();
    // A mount point on the way to a visible file may be listed, and shows nothing else.
    let shown = |entry: &io::Result<fs::DirEntry>| {
        entry.as_ref().is_ok_and(|entry| Some(entry.file_name().as_os_str()) == secret.file_name())
    };
    if names.iter().any(shown) { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
}

fn mount() -> io::Result<()> {
    Ok(rustix::mount::mount("intruder", "/tmp", "tmpfs", MountFlags::empty(), None)?)
}

fn remount() -> io::Result<()> {
    Ok(rustix::mount::mount_remount("/usr", MountFlags::BIND, "")?)
}

#[allow(unsafe_code)]
fn unshare(namespaces: UnshareFlags) -> io::Result<()> {
    // SAFETY: no file descriptors are involved.
    Ok(unsafe { rustix::thread::unshare_unsafe(namespaces) }?)
}

fn make_device() -> io::Result<()> {
    let memory = rustix::fs::makedev(1, 1);
    let kind = rustix::fs::FileType::CharacterDevice;
    Ok(rustix::fs::mknodat(rustix::fs::CWD, "/tmp/memory", kind, Mode::RUSR, memory)?)
}

fn see_others() -> io::Result<()> {
    let is_other = |entry: &io::Result<fs::DirEntry>| {
        let name = entry.as_ref().map(fs::DirEntry::file_name).unwrap_or_default();
        name.to_string_lossy().parse::<u32>().is_ok_and(|pid| pid != std::process::id())
    };
    if fs::read_dir("/proc")?.any(|entry| is_other(&entry)) {
        Ok(())
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Signals every process that it may signal, itself excepted (kill(2)); the signal does nothing by default.
#[allow(unsafe_code)]
fn signal_others() -> io::Result<()> {
    // SAFETY: kill takes no memory.
    match unsafe { libc::kill(-1, Signal::URG.as_raw()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn trace_parent() -> io::Result<()> {
    // The parent's number does not exist in the namespace, so all small numbers are tried.
    let seized = (1..1000).filter(|pid| Pid::from_raw(*pid) != Some(rustix::process::getpid())).any(|pid| {
        system_call(libc::SYS_ptrace, [i64::from(libc::PTRACE_SEIZE), i64::from(pid), 0, 0]).is_ok()
    });
    if seized { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

fn keep_key() -> io::Result<()> {
    // The session keyring's number, made if there is none.
    system_call(libc::SYS_keyctl, [i64::from(libc::KEYCTL_GET_KEYRING_ID), -3, 1, 0])
}

/// Succeeds unless the call fails with EPERM. Its arguments make no sense, so without a filter it fails
/// otherwise.
fn rejected_as_unknown(call: libc::c_long) -> io::Result<()> {
    match system_call(call, [-1, -1, -1, -1]) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => Err(error),
        _ => Ok(()),
    }
}

#[allow(unsafe_code)]
fn system_call(call: libc::c_long, arguments: [i64; 4]) -> io::Result<()> {
    let [a, b, c, d] = arguments;
    // SAFETY: the pointers among the arguments are null or invalid, which the kernel rejects.
    match unsafe { libc::syscall(call, a, b, c, d) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

//! Why the kernel rejects namespaces on this machine, and what to do about it.

use experiment::environment::EnvironmentError;
use rustix::io::Errno;
use std::fs;
use std::io;
use std::path::Path;

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Facts {
    root: bool,
    container: bool,
    /// `kernel.unprivileged_userns_clone`, if the distribution has it.
    unprivileged_clone: Option<u64>,
    /// `kernel.apparmor_restrict_unprivileged_userns`, if the distribution has it.
    apparmor_restricts: Option<u64>,
    max_user_namespaces: Option<u64>,
}

impl Facts {
    fn read() -> Self {
        let sysctl = |name: &str| {
            let path = Path::new("/proc/sys").join(name.replace('.', "/"));
            fs::read_to_string(path).ok()?.trim().parse().ok()
        };
        // An ordinary shell with a seccomp filter indicates a container runtime that has no marker file.
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        Self {
            root: rustix::process::geteuid().is_root(),
            container: Path::new("/.dockerenv").exists()
                || Path::new("/run/.containerenv").exists()
                || status.lines().any(|line| line == "Seccomp:\t2"),
            unprivileged_clone: sysctl("kernel.unprivileged_userns_clone"),
            apparmor_restricts: sysctl("kernel.apparmor_restrict_unprivileged_userns"),
            max_user_namespaces: sysctl("user.max_user_namespaces"),
        }
    }
}

const CONTAINER_HINT: &str = "in a container: start it with `--privileged`, or with `--cap-add SYS_ADMIN --cap-add NET_ADMIN \
                              --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined`";

pub(crate) fn refused(operation: &str, error: io::Error) -> EnvironmentError {
    let hint = hint(error.raw_os_error(), &Facts::read());
    let error = EnvironmentError::new(operation, error);
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

fn hint(error: Option<i32>, facts: &Facts) -> Option<&'static str> {
    let error = error.map(Errno::from_raw_os_error)?;
    let hint = match error {
        Errno::NOSPC | Errno::USERS if facts.max_user_namespaces == Some(0) => {
            "user namespaces are switched off: `sysctl user.max_user_namespaces=10000` (as root), or run as root"
        }
        Errno::NOSPC | Errno::USERS => {
            "the limit of namespaces is reached: see `sysctl user.max_user_namespaces user.max_net_namespaces \
             user.max_pid_namespaces`, and `meshmeter lab status --json` for labs that are up"
        }
        Errno::PERM | Errno::ACCESS if !facts.root && facts.unprivileged_clone == Some(0) => {
            "ordinary users may not make user namespaces here: `sysctl kernel.unprivileged_userns_clone=1` (as root), or \
             run as root"
        }
        Errno::PERM | Errno::ACCESS if !facts.root && facts.apparmor_restricts == Some(1) => {
            "AppArmor takes the rights from user namespaces here: `sysctl kernel.apparmor_restrict_unprivileged_userns=0` \
             (as root), or run as root"
        }
        Errno::PERM | Errno::ACCESS if facts.container => CONTAINER_HINT,
        Errno::PERM | Errno::ACCESS if !facts.root => {
            "run as root, or ask the administrator to allow user namespaces (not possible within a chroot)"
        }
        Errno::PERM | Errno::ACCESS => "root lacks CAP_SYS_ADMIN here, and user namespaces are refused too",
        Errno::INVAL => {
            "the kernel may lack namespaces: CONFIG_USER_NS, CONFIG_PID_NS and CONFIG_NET_NS must be set"
        }
        _ => return None,
    };
    Some(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint_for(error: Errno, facts: &Facts) -> &'static str {
        hint(Some(error.raw_os_error()), facts).expect("there is a hint")
    }

    #[test]
    fn each_cause_has_specific_remedy() {
        let user = Facts { max_user_namespaces: Some(100), ..Facts::default() };
        let debian = Facts { unprivileged_clone: Some(0), ..user };
        assert!(hint_for(Errno::PERM, &debian).contains("kernel.unprivileged_userns_clone=1"));
        let ubuntu = Facts { unprivileged_clone: Some(1), apparmor_restricts: Some(1), ..user };
        assert!(hint_for(Errno::ACCESS, &ubuntu).contains("apparmor_restrict_unprivileged_userns=0"));
        let switched_off = Facts { max_user_namespaces: Some(0), ..user };
        assert!(hint_for(Errno::NOSPC, &switched_off).contains("user.max_user_namespaces=10000"));
        assert!(hint_for(Errno::NOSPC, &user).contains("limit of namespaces is reached"));
        let docker = Facts { root: true, container: true, ..Facts::default() };
        assert!(hint_for(Errno::PERM, &docker).contains("--privileged"));
        assert!(hint_for(Errno::PERM, &user).contains("run as root"));
    }

    #[test]
    fn unknown_errors_have_no_remedy() {
        assert_eq!(hint(Some(Errno::IO.raw_os_error()), &Facts::default()), None);
        assert_eq!(hint(None, &Facts::default()), None);
    }
}

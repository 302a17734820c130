//! The seccomp filter: a list of system calls that fail with EPERM.
//!
//! The denied calls change mounts, namespaces, the kernel or other processes, or are rarely audited. The
//! kernel evaluates the filter once per call that is always allowed, and then looks it up in a bitmap.

use libc::{
    BPF_ABS, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W, c_long, sock_filter,
};
use std::io;
use std::mem::offset_of;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// Number from which the x32 ABI of x86-64 begins, which would reach the same calls by other numbers.
const X32_NUMBERS: u32 = 0x4000_0000;

const DENIED: &[c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
];

const NEW_NAMESPACES: u32 = (libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWUTS) as u32;

/// A compiled filter.
#[derive(Clone, Debug)]
pub struct SystemCallFilter(Vec<sock_filter>);

/// Namespaces that a process may join with setns(2).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Joinable {
    #[default]
    Nothing,
    /// For a node proxy, which opens sockets in the pods of its node.
    Networks,
}

impl SystemCallFilter {
    pub fn new(joinable: Joinable) -> Self {
        let number = load(offset_of!(libc::seccomp_data, nr));
        let mut program = vec![
            load(offset_of!(libc::seccomp_data, arch)),
            jump(BPF_JEQ, ARCHITECTURE, 1, 0),
            answer(libc::SECCOMP_RET_KILL_PROCESS),
            number,
        ];
        if cfg!(target_arch = "x86_64") {
            program.extend([jump(BPF_JGE, X32_NUMBERS, 0, 1), deny(libc::ENOSYS)]);
        }
        for call in DENIED {
            program.extend([is_call(*call, 1), deny(libc::EPERM)]);
        }
        // The flags of clone3(2) are in memory, which a filter cannot read: callers fall back to clone(2).
        program.extend([is_call(libc::SYS_clone3, 1), deny(libc::ENOSYS)]);
        let namespaces = jump(BPF_JSET, NEW_NAMESPACES, 0, 1);
        program.extend([is_call(libc::SYS_clone, 4), argument(0), namespaces, deny(libc::EPERM), allow()]);
        if joinable == Joinable::Networks {
            let network = jump(BPF_JEQ, libc::CLONE_NEWNET as u32, 0, 1);
            program.extend([is_call(libc::SYS_setns, 3), argument(1), network, allow()]);
            program.push(number);
        }
        program.extend([is_call(libc::SYS_setns, 1), deny(libc::EPERM), allow()]);
        Self(program)
    }

    /// Applies the filter to the calling thread and its children. Needs `no_new_privs`. Makes one system call.
    #[allow(unsafe_code)]
    pub fn apply(&self) -> io::Result<()> {
        let length = u16::try_from(self.0.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let program = libc::sock_fprog { len: length, filter: self.0.as_ptr().cast_mut() };
        // SAFETY: the kernel copies the program, which is borrowed meanwhile, and does not write to it.
        let result = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                // Without it, kernels before 5.16 also switch off speculative stores, which costs far more.
                libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW,
                &raw const program,
            )
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

fn instruction(code: u32, jump_if_true: u8, jump_if_false: u8, operand: u32) -> sock_filter {
    // Codes of BPF have 16 bits.
    sock_filter { code: code as u16, jt: jump_if_true, jf: jump_if_false, k: operand }
}

fn load(offset: usize) -> sock_filter {
    instruction(BPF_LD | BPF_W | BPF_ABS, 0, 0, offset as u32)
}

/// Loads the lower half of an argument; both architectures are little-endian.
fn argument(index: usize) -> sock_filter {
    load(offset_of!(libc::seccomp_data, args) + index * size_of::<u64>())
}

fn jump(condition: u32, operand: u32, if_true: u8, if_false: u8) -> sock_filter {
    instruction(BPF_JMP | condition | BPF_K, if_true, if_false, operand)
}

/// Goes on if it is this call, and skips `otherwise_skip` instructions if not.
fn is_call(call: c_long, otherwise_skip: u8) -> sock_filter {
    jump(BPF_JEQ, call as u32, 0, otherwise_skip)
}

fn answer(action: u32) -> sock_filter {
    instruction(BPF_RET | BPF_K, 0, 0, action)
}

fn allow() -> sock_filter {
    answer(libc::SECCOMP_RET_ALLOW)
}

fn deny(error: i32) -> sock_filter {
    answer(libc::SECCOMP_RET_ERRNO | error as u32)
}

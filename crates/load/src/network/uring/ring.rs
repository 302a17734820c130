//! The submission and completion queues shared with the kernel, set up for a single submitting thread.
//!
//! Only the thread that enables the ring may use it (`SINGLE_ISSUER`). The kernel processes completions only
//! while that thread waits (`DEFER_TASKRUN`, Linux 6.1), so nothing interrupts it in between. Pending work
//! can be detected without a system call (`TASKRUN_FLAG`).
//!
//! Memory that the kernel reads or writes is owned by the ring until the kernel is done with it: buffers to
//! send are moved in and returned. No caller can get this wrong, and all unsafe code is here and in
//! `buffers`.

use super::buffers::Buffers;
use super::tag::{Operation, Tag};
use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, opcode, squeue};
use rustix::event::PollFlags;
use rustix::fd::{AsFd, AsRawFd, RawFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use socket2::SockAddr;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};

/// Operations submitted in one system call.
const SUBMISSIONS: u32 = 256;
/// Capacity of the completion queue; the kernel holds back any more until there is room.
const COMPLETIONS: u32 = 1024;
/// Submissions in a row of which the kernel may accept none before this is an error.
const MAX_EMPTY_SUBMISSIONS: u32 = 1000;
/// Maximum wait for in-flight operations when a ring is dropped.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);
/// Sends as much as possible, and posts a completion if that is less than everything.
const ALL_OF_IT: u32 = SendFlags::NOSIGNAL.bits() | RecvFlags::WAITALL.bits();

/// A completion reported by the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completion {
    pub(super) tag: Tag,
    /// Bytes transferred, or the error.
    pub(super) outcome: Result<usize, Errno>,
    /// The buffer that was received into.
    pub(super) buffer: Option<u16>,
    /// The operation continues (multishot).
    pub(super) more: bool,
}

/// Reference of operations to a socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handle {
    number: RawFd,
    flags: squeue::Flags,
}

impl Handle {
    /// As a descriptor or a registered socket, depending on the flags.
    fn fd(self) -> Fd {
        Fd(self.number)
    }
}

/// Memory that an operation refers to.
#[expect(dead_code, reason = "held for the kernel, which reads it")]
enum Lent {
    Address(Box<SockAddr>),
    Bytes(Vec<u8>),
}

/// A ring, its buffers, and the memory that its operations refer to.
pub(crate) struct Ring {
    /// Dropped first: it refers to all of the others.
    ring: ManuallyDrop<IoUring>,
    buffers: ManuallyDrop<Buffers>,
    /// By tag of the operation, until its last completion.
    lent: ManuallyDrop<HashMap<u64, Lent>>,
    /// Buffers of sends that end with their submission.
    sent: ManuallyDrop<Vec<(Tag, Vec<u8>)>>,
    enabled: bool,
    /// Sockets of the slots below this one are registered: see [`Ring::register`].
    registered: usize,
    /// Operations in the kernel whose last completion has not been reported.
    in_flight: usize,
}

impl Ring {
    /// Creates a ring that is not enabled yet. Fails if the kernel does not let this process use io_uring, or
    /// is older than 6.1.
    #[allow(unsafe_code)]
    pub(crate) fn new() -> io::Result<Self> {
        let ring: IoUring = match build(true) {
            // Linux before 6.6 does not support omitting the array.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => build(false)?,
            outcome => outcome?,
        };
        let buffers = Buffers::new();
        let (address, entries) = buffers.ring();
        // SAFETY: the buffers are dropped after the ring, by `Drop`, and below if this fails: the ring has no
        // operations.
        unsafe { ring.submitter().register_buf_ring_with_flags(address, entries, Buffers::GROUP, 0)? };
        Ok(Self {
            ring: ManuallyDrop::new(ring),
            buffers: ManuallyDrop::new(buffers),
            lent: ManuallyDrop::default(),
            sent: ManuallyDrop::default(),
            enabled: false,
            registered: 0,
            in_flight: 0,
        })
    }

    /// Reserves registered-file entries for this many slots.
    pub(super) fn reserve(&mut self, slots: usize) -> io::Result<()> {
        if lets_go_of_registered_sockets(rustix::system::uname().release().to_str().unwrap_or("")) {
            let table = u32::try_from(slots).unwrap_or(u32::MAX).max(1);
            self.ring.submitter().register_files_sparse(table)?;
            self.registered = slots;
        }
        Ok(())
    }

    /// Sets how operations refer to a slot's socket from now on. With a registered socket the kernel skips
    /// the reference counting per operation.
    pub(super) fn register(&self, slot: usize, socket: impl AsFd) -> io::Result<Handle> {
        let number = socket.as_fd().as_raw_fd();
        if slot >= self.registered {
            return Ok(Handle { number, flags: squeue::Flags::empty() });
        }
        let slot = u32::try_from(slot).expect("fewer connections than that");
        self.ring.submitter().register_files_update(slot, &[number])?;
        Ok(Handle { number: slot as RawFd, flags: squeue::Flags::FIXED_FILE })
    }

    /// Unregisters the slot's socket. Operations in progress keep it open.
    pub(super) fn unregister(&self, slot: usize) {
        if slot < self.registered {
            let outcome = self.ring.submitter().register_files_update(slot as u32, &[-1]);
            outcome.expect("there is such a slot, and letting go needs no memory");
        }
    }

    /// Enables the ring for the calling thread, and only for it.
    pub(super) fn enable(&mut self) -> io::Result<()> {
        if !self.enabled {
            self.ring.submitter().register_enable_rings()?;
            self.enabled = true;
        }
        Ok(())
    }

    /// Connects a socket.
    pub(super) fn connect(&mut self, socket: Handle, address: Box<SockAddr>, tag: Tag) -> io::Result<()> {
        let operation = opcode::Connect::new(socket.fd(), address.as_ptr().cast(), address.len()).build();
        self.lent.insert(tag.to_bits(), Lent::Address(address));
        self.in_flight += 1;
        self.push(&operation.flags(socket.flags).user_data(tag.to_bits()))
    }

    /// Receives messages on a socket repeatedly (multishot), until a completion without the `more` flag.
    pub(super) fn receive(&mut self, socket: Handle, tag: Tag) -> io::Result<()> {
        let operation = opcode::RecvMsgMulti::new(socket.fd(), self.buffers.parts(), Buffers::GROUP).build();
        self.in_flight += 1;
        self.push(&operation.flags(socket.flags).user_data(tag.to_bits()))
    }

    /// Posts a completion each time the descriptor becomes readable (multishot), until one without the `more`
    /// flag.
    pub(super) fn watch(&mut self, descriptor: impl AsFd, tag: Tag) -> io::Result<()> {
        let descriptor = Fd(descriptor.as_fd().as_raw_fd());
        let operation = opcode::PollAdd::new(descriptor, PollFlags::IN.bits().into()).multi(true).build();
        self.in_flight += 1;
        self.push(&operation.user_data(tag.to_bits()))
    }

    /// Sends as much as the kernel accepts at once. A completion is posted only if that is less than
    /// everything. The bytes are returned by [`Ring::take_sent`].
    pub(super) fn send_now(&mut self, socket: Handle, bytes: Vec<u8>, tag: Tag) -> io::Result<()> {
        let flags = ALL_OF_IT | SendFlags::DONTWAIT.bits();
        let operation = send(socket, &bytes, flags).flags(squeue::Flags::SKIP_SUCCESS);
        self.sent.push((tag, bytes));
        self.push(&operation.user_data(tag.to_bits()))
    }

    /// Sends everything as soon as the kernel accepts it. The bytes are returned by [`Ring::take_back`].
    pub(super) fn send_all(&mut self, socket: Handle, bytes: Vec<u8>, tag: Tag) -> io::Result<()> {
        let operation = send(socket, &bytes, ALL_OF_IT);
        self.lent.insert(tag.to_bits(), Lent::Bytes(bytes));
        self.in_flight += 1;
        self.push(&operation.user_data(tag.to_bits()))
    }

    /// Cancels the operation with this tag, which then posts its last completion.
    pub(super) fn cancel(&mut self, tag: Tag) -> io::Result<()> {
        let own = Tag { operation: Operation::Cancel, ..tag };
        let operation = opcode::AsyncCancel::new(tag.to_bits()).build().flags(squeue::Flags::SKIP_SUCCESS);
        self.push(&operation.user_data(own.to_bits()))
    }

    #[allow(unsafe_code)]
    fn push(&mut self, operation: &squeue::Entry) -> io::Result<()> {
        if self.ring.submission().is_full() {
            self.submit()?;
        }
        // SAFETY: operations refer to memory that outlives them. It is in the buffers, or in `lent` until
        // their last completion, or in `sent` until they are submitted, by when those that do not wait have
        // ended. Boxes and vectors do not move what they hold.
        unsafe { self.ring.submission().push(operation) }.expect("there is room since all was submitted");
        Ok(())
    }

    /// Submits everything and waits for a completion without a time limit.
    pub(super) fn submit_and_wait(&mut self) -> io::Result<()> {
        pass(self.ring.submitter().submit_and_wait(1))?;
        // If the kernel accepted only a part, it did not wait.
        if self.ring.submission().is_empty() { Ok(()) } else { self.submit() }
    }

    /// Submits everything and waits at most this long for a completion.
    fn submit_and_wait_for(&mut self, at_most: Duration) -> io::Result<()> {
        let timeout = Timespec::from(at_most);
        let arguments = SubmitArgs::new().timespec(&timeout);
        pass(self.ring.submitter().submit_with_args(1, &arguments))?;
        // If the kernel accepted only a part, it did not wait.
        if self.ring.submission().is_empty() { Ok(()) } else { self.submit() }
    }

    /// Submits everything, and lets the kernel run its deferred work, if there is any.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        for _ in 0..MAX_EMPTY_SUBMISSIONS {
            let queue = self.ring.submission();
            if queue.is_empty() && !queue.taskrun() && !queue.cq_overflow() {
                return Ok(());
            }
            drop(queue);
            self.enter()?;
            if self.ring.submission().is_empty() {
                return Ok(());
            }
        }
        Err(io::Error::other("the kernel takes no more operations"))
    }

    /// Submits what the kernel accepts and lets it run deferred work, such as that of the new submissions.
    #[allow(unsafe_code)]
    fn enter(&mut self) -> io::Result<()> {
        let submissions = u32::try_from(self.ring.submission().len()).unwrap_or(SUBMISSIONS);
        let flags = EnterFlags::GETEVENTS.bits();
        // SAFETY: the queue has no more submissions than that, and there is no argument.
        pass(unsafe { self.ring.submitter().enter::<()>(submissions, 0, flags, None) })
    }

    /// Appends everything that has completed to `completions`, including entries that overflowed the queue.
    pub(super) fn take_completions(&mut self, completions: &mut Vec<Completion>) -> io::Result<()> {
        loop {
            for entry in self.ring.completion() {
                let completion = Completion::from_entry(&entry);
                match completion.tag.operation {
                    Operation::SendNow => {}
                    // Nothing depends on it.
                    Operation::Cancel => continue,
                    Operation::Connect | Operation::Receive | Operation::SendAll | Operation::WakeTimer => {
                        self.in_flight -= usize::from(!completion.more);
                    }
                }
                if completion.tag.operation == Operation::Connect {
                    self.lent.remove(&completion.tag.to_bits());
                }
                completions.push(completion);
            }
            if !self.ring.submission().cq_overflow() {
                return Ok(());
            }
            self.enter()?;
        }
    }

    /// Buffers sent with [`Ring::send_now`], once everything is submitted. If less than everything was sent,
    /// a completion reports it.
    pub(super) fn take_sent(&mut self) -> impl Iterator<Item = (Tag, Vec<u8>)> {
        assert!(self.ring.submission().is_empty(), "bytes are the kernel's until they are submitted");
        self.sent.drain(..)
    }

    /// The buffer of a [`Ring::send_all`] that has completed.
    pub(super) fn take_back(&mut self, completion: &Completion) -> Option<Vec<u8>> {
        assert!(!completion.more, "bytes are the kernel's until the last completion");
        match self.lent.remove(&completion.tag.to_bits())? {
            Lent::Bytes(bytes) => Some(bytes),
            Lent::Address(_) => None,
        }
    }

    /// Bytes received into a buffer that has not been returned, and their receive timestamp. No bytes are the end of the stream.
    pub(super) fn received(&self, buffer: u16, length: usize) -> (&[u8], Option<Duration>) {
        self.buffers.message(buffer, length)
    }

    /// Returns a buffer to the kernel.
    pub(super) fn give_back(&mut self, buffer: u16) {
        self.buffers.give_back(buffer);
    }

    /// Cancels everything in progress, and waits for it to end.
    fn end_all(&mut self) -> io::Result<()> {
        self.submit()?;
        if self.in_flight == 0 {
            return Ok(());
        }
        match self.ring.submitter().register_sync_cancel(Some(CANCEL_TIMEOUT.into()), CancelBuilder::any()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let deadline = Instant::now() + CANCEL_TIMEOUT;
        let mut completions = Vec::new();
        self.take_completions(&mut completions)?;
        while self.in_flight > 0 && Instant::now() < deadline {
            self.submit_and_wait_for(deadline.saturating_duration_since(Instant::now()))?;
            self.take_completions(&mut completions)?;
        }
        Ok(())
    }
}

#[allow(unsafe_code)]
impl Drop for Ring {
    fn drop(&mut self) {
        let ended = !self.enabled || (self.end_all().is_ok() && self.in_flight == 0);
        // SAFETY: none of the four is used again.
        unsafe {
            ManuallyDrop::drop(&mut self.ring);
            // Memory that the kernel may still access is never freed: it outlives the ring.
            if ended {
                ManuallyDrop::drop(&mut self.buffers);
                ManuallyDrop::drop(&mut self.lent);
                ManuallyDrop::drop(&mut self.sent);
            }
        }
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("enabled", &self.enabled).field("in_flight", &self.in_flight).finish()
    }
}

impl Completion {
    fn from_entry(entry: &cqueue::Entry) -> Self {
        Self {
            tag: Tag::from_bits(entry.user_data()),
            outcome: match usize::try_from(entry.result()) {
                Ok(bytes) => Ok(bytes),
                Err(_) => Err(Errno::from_raw_os_error(-entry.result())),
            },
            buffer: cqueue::buffer_select(entry.flags()),
            more: cqueue::more(entry.flags()),
        }
    }
}

fn build(without_array: bool) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    builder
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_taskrun_flag()
        .setup_submit_all()
        .setup_r_disabled()
        .setup_cqsize(COMPLETIONS);
    if without_array {
        builder.setup_no_sqarray();
    }
    builder.build(SUBMISSIONS)
}

/// True if this kernel release frees a registered socket once its own operations have ended (Linux 6.13).
/// Before, a closed one stayed open as long as any older operation, of any connection.
fn lets_go_of_registered_sockets(release: &str) -> bool {
    let mut numbers = release.split(|character: char| !character.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= (6, 13),
        _ => false,
    }
}

fn send(socket: Handle, bytes: &[u8], flags: u32) -> squeue::Entry {
    // Bytes beyond 4 GiB are reported as not sent.
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    opcode::Send::new(socket.fd(), bytes.as_ptr(), length).flags(flags as i32).build().flags(socket.flags)
}

/// Ignores outcomes that are not errors of a submission: a timeout, a signal, or completions that must be
/// collected first.
fn pass(outcome: io::Result<usize>) -> io::Result<()> {
    match outcome {
        Ok(_) => Ok(()),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::TIME | Errno::INTR | Errno::BUSY | Errno::AGAIN) => Ok(()),
            _ => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_registered_if_kernel_frees_them() {
        for (release, expected) in [
            ("6.18.5", true),
            ("6.13.0-rc1-generic", true),
            ("7.0", true),
            ("6.12.9", false),
            ("6.1.0-18-amd64", false),
            ("5.19", false),
            ("unknown", false),
            ("", false),
        ] {
            assert_eq!(lets_go_of_registered_sockets(release), expected, "{release}");
        }
    }
}

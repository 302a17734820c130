//! The pair of queues that is shared with the kernel, set up for one thread that asks and waits.
//!
//! The thread that enables the ring is the only one that may use it (`SINGLE_ISSUER`), and the kernel works on completions
//! only while that thread waits (`DEFER_TASKRUN`, Linux 6.1): nothing interrupts it in between, and whether something has
//! come meanwhile can be seen without a system call (`TASKRUN_FLAG`).
//!
//! Memory that the kernel reads or writes belongs to the ring until the kernel is done with it: bytes to be sent are handed
//! over, and handed back. So nobody else can get it wrong, and all of the unsafe code is here and in `buffers`.

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
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Operations that are handed over in one system call.
const SUBMISSIONS: u32 = 256;
/// Completions for which there is room; the kernel keeps what is beyond until there is.
const COMPLETIONS: u32 = 1024;
/// How often in a row the kernel may take nothing of what it is handed before that is an error.
const VAIN_SUBMISSIONS: u32 = 1000;
/// How long the end of what is on its way is awaited when a ring is dropped.
const FAREWELL: Duration = Duration::from_secs(1);
/// Sends as much as it can, and says when it was less than all.
const ALL_OF_IT: u32 = SendFlags::NOSIGNAL.bits() | RecvFlags::WAITALL.bits();

/// What the kernel says of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completion {
    pub(super) tag: Tag,
    /// Bytes that were moved, or what went wrong.
    pub(super) outcome: Result<usize, Errno>,
    /// The buffer that was received into.
    pub(super) buffer: Option<u16>,
    /// The operation goes on.
    pub(super) more: bool,
}

/// How operations name a socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handle {
    number: RawFd,
    flags: squeue::Flags,
}

impl Handle {
    /// Of a descriptor or of a registered socket, as the flags say.
    fn fd(self) -> Fd {
        Fd(self.number)
    }
}

/// Memory that an operation names.
#[expect(dead_code, reason = "held for the kernel, which reads it")]
enum Lent {
    Address(Box<SockAddr>),
    Bytes(Vec<u8>),
}

/// See the module.
pub(crate) struct Ring {
    /// Dropped first: it refers to all of the others.
    ring: ManuallyDrop<IoUring>,
    buffers: ManuallyDrop<Buffers>,
    /// By the tag of the operation, until its last completion.
    lent: ManuallyDrop<HashMap<u64, Lent>>,
    /// Bytes of the sends that end with their submission.
    sent: ManuallyDrop<Vec<(Tag, Vec<u8>)>>,
    enabled: bool,
    /// Sockets are registered: see [`Ring::register`].
    registers: bool,
    /// Operations that the kernel holds and that have not told their last completion.
    in_flight: usize,
}

impl Ring {
    /// A ring that is not enabled yet.
    ///
    /// # Errors
    /// Where the kernel does not let this process use io_uring, or is older than 6.1.
    #[allow(unsafe_code)]
    pub(crate) fn new() -> io::Result<Self> {
        let ring: IoUring = match build(true) {
            // Linux before 6.6 does not know that it can do without the array.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => build(false)?,
            outcome => outcome?,
        };
        let buffers = Buffers::new();
        let (address, entries) = buffers.ring();
        // SAFETY: the buffers are dropped after the ring, by `Drop`, and below where this fails: the ring has no operation.
        unsafe { ring.submitter().register_buf_ring_with_flags(address, entries, Buffers::GROUP, 0)? };
        Ok(Self {
            ring: ManuallyDrop::new(ring),
            buffers: ManuallyDrop::new(buffers),
            lent: ManuallyDrop::default(),
            sent: ManuallyDrop::default(),
            enabled: false,
            registers: false,
            in_flight: 0,
        })
    }

    /// Makes room for the sockets of so many slots.
    pub(super) fn reserve(&mut self, slots: usize) -> io::Result<()> {
        if lets_go_of_registered_sockets(rustix::system::uname().release().to_str().unwrap_or("")) {
            let slots = u32::try_from(slots).unwrap_or(u32::MAX).max(1);
            self.ring.submitter().register_files_sparse(slots)?;
            self.registers = true;
        }
        Ok(())
    }

    /// How operations are to name a slot's socket from now on. The kernel finds a registered one without counting its users
    /// for each operation.
    pub(super) fn register(&self, slot: usize, socket: impl AsFd) -> io::Result<Handle> {
        let number = socket.as_fd().as_raw_fd();
        if !self.registers {
            return Ok(Handle { number, flags: squeue::Flags::empty() });
        }
        let slot = u32::try_from(slot).expect("fewer connections than that");
        self.ring.submitter().register_files_update(slot, &[number])?;
        Ok(Handle { number: slot as RawFd, flags: squeue::Flags::FIXED_FILE })
    }

    /// No more operations come for this slot. Those under way keep the socket.
    pub(super) fn unregister(&self, slot: usize) {
        if self.registers {
            let outcome = self.ring.submitter().register_files_update(slot as u32, &[-1]);
            outcome.expect("there is such a slot, and letting go needs no memory");
        }
    }

    /// From now on the calling thread may use it, and no other.
    pub(super) fn enable(&mut self) -> io::Result<()> {
        if !self.enabled {
            self.ring.submitter().register_enable_rings()?;
            self.enabled = true;
        }
        Ok(())
    }

    /// Connects a socket.
    pub(super) fn connect(&mut self, socket: Handle, address: SocketAddr, tag: Tag) -> io::Result<()> {
        let address = Box::new(SockAddr::from(address));
        let operation = opcode::Connect::new(socket.fd(), address.as_ptr().cast(), address.len()).build();
        self.lent.insert(tag.to_bits(), Lent::Address(address));
        self.in_flight += 1;
        self.push(&operation.flags(socket.flags).user_data(tag.to_bits()))
    }

    /// Receives on a socket again and again, until it tells a completion after which there are no more.
    pub(super) fn receive(&mut self, socket: Handle, tag: Tag) -> io::Result<()> {
        let operation = opcode::RecvMulti::new(socket.fd(), Buffers::GROUP).build().flags(socket.flags);
        self.in_flight += 1;
        self.push(&operation.user_data(tag.to_bits()))
    }

    /// Tells a completion each time that the descriptor becomes readable, until it tells one after which there are no more.
    pub(super) fn watch(&mut self, descriptor: impl AsFd, tag: Tag) -> io::Result<()> {
        let descriptor = Fd(descriptor.as_fd().as_raw_fd());
        let operation = opcode::PollAdd::new(descriptor, PollFlags::IN.bits().into()).multi(true).build();
        self.in_flight += 1;
        self.push(&operation.user_data(tag.to_bits()))
    }

    /// Sends as much as the kernel takes at once. Only where that is not all, a completion tells so. The bytes are handed
    /// back by [`Ring::take_sent`].
    pub(super) fn send_now(&mut self, socket: Handle, bytes: Vec<u8>, tag: Tag) -> io::Result<()> {
        let flags = ALL_OF_IT | SendFlags::DONTWAIT.bits();
        let operation = send(socket, &bytes, flags).flags(squeue::Flags::SKIP_SUCCESS);
        self.sent.push((tag, bytes));
        self.push(&operation.user_data(tag.to_bits()))
    }

    /// Sends everything, as soon as the kernel takes it. The bytes are handed back by [`Ring::take_back`].
    pub(super) fn send_all(&mut self, socket: Handle, bytes: Vec<u8>, tag: Tag) -> io::Result<()> {
        let operation = send(socket, &bytes, ALL_OF_IT);
        self.lent.insert(tag.to_bits(), Lent::Bytes(bytes));
        self.in_flight += 1;
        self.push(&operation.user_data(tag.to_bits()))
    }

    /// Ends the operation with that tag, which tells its last completion then.
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
        // SAFETY: what operations name is theirs: the buffers, or in `lent` until their last completion, or in `sent` until
        // they are submitted, by when those that do not wait have ended. Boxes and vectors do not move what they hold.
        unsafe { self.ring.submission().push(operation) }.expect("there is room since all was submitted");
        Ok(())
    }

    /// Submits everything and waits for a completion, however long it takes.
    pub(super) fn submit_and_wait(&mut self) -> io::Result<()> {
        pass(self.ring.submitter().submit_and_wait(1))?;
        // Where the kernel took only a part, it did not wait.
        if self.ring.submission().is_empty() { Ok(()) } else { self.submit() }
    }

    /// Submits everything and waits for a completion, at most this long.
    fn submit_and_wait_for(&mut self, at_most: Duration) -> io::Result<()> {
        let timeout = Timespec::from(at_most);
        let arguments = SubmitArgs::new().timespec(&timeout);
        pass(self.ring.submitter().submit_with_args(1, &arguments))?;
        // Where the kernel took only a part, it did not wait.
        if self.ring.submission().is_empty() { Ok(()) } else { self.submit() }
    }

    /// Submits everything, and lets the kernel do what it has put off, if there is anything to do.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        for _ in 0..VAIN_SUBMISSIONS {
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

    /// Submits what the kernel takes and lets it do what it has put off, such as what was just submitted brought about.
    #[allow(unsafe_code)]
    fn enter(&mut self) -> io::Result<()> {
        let submissions = u32::try_from(self.ring.submission().len()).unwrap_or(SUBMISSIONS);
        let flags = EnterFlags::GETEVENTS.bits();
        // SAFETY: there are no more submissions than that in the queue, and there is no argument.
        pass(unsafe { self.ring.submitter().enter::<()>(submissions, 0, flags, None) })
    }

    /// Moves what has completed to the end of `completions`: everything, also what had no room in the queue.
    pub(super) fn take_completions(&mut self, completions: &mut Vec<Completion>) -> io::Result<()> {
        loop {
            for entry in self.ring.completion() {
                let completion = Completion::of(&entry);
                match completion.tag.operation {
                    Operation::SendNow => {}
                    // Nothing depends on it.
                    Operation::Cancel => continue,
                    Operation::Connect | Operation::Receive | Operation::SendAll | Operation::Alarm => {
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

    /// The bytes that were sent with [`Ring::send_now`], after all is submitted. Where less than all of them went, a
    /// completion tells so.
    pub(super) fn take_sent(&mut self) -> impl Iterator<Item = (Tag, Vec<u8>)> {
        assert!(self.ring.submission().is_empty(), "bytes are the kernel's until they are submitted");
        self.sent.drain(..)
    }

    /// The bytes of a [`Ring::send_all`] that has completed.
    pub(super) fn take_back(&mut self, completion: &Completion) -> Option<Vec<u8>> {
        assert!(!completion.more, "bytes are the kernel's until the last completion");
        match self.lent.remove(&completion.tag.to_bits())? {
            Lent::Bytes(bytes) => Some(bytes),
            Lent::Address(_) => None,
        }
    }

    /// What was received into a buffer that has not been given back.
    pub(super) fn received(&self, buffer: u16, length: usize) -> &[u8] {
        self.buffers.bytes(buffer, length)
    }

    /// The kernel may receive into that buffer again.
    pub(super) fn give_back(&mut self, buffer: u16) {
        self.buffers.give_back(buffer);
    }

    /// Ends everything that is on its way.
    fn end_all(&mut self) -> io::Result<()> {
        self.submit()?;
        if self.in_flight == 0 {
            return Ok(());
        }
        match self.ring.submitter().register_sync_cancel(Some(FAREWELL.into()), CancelBuilder::any()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let deadline = Instant::now() + FAREWELL;
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
        // SAFETY: none of the four is touched again.
        unsafe {
            ManuallyDrop::drop(&mut self.ring);
            // What the kernel may still write to or read from is never freed: it outlives the ring by a while.
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
    fn of(entry: &cqueue::Entry) -> Self {
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

/// Whether the kernel of this release lets go of a registered socket when its own operations have ended (Linux 6.13). Before,
/// one that was closed stayed open for as long as any operation that was older, of whichever connection.
fn lets_go_of_registered_sockets(release: &str) -> bool {
    let mut numbers = release.split(|character: char| !character.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= (6, 13),
        _ => false,
    }
}

fn send(socket: Handle, bytes: &[u8], flags: u32) -> squeue::Entry {
    // What is beyond 4 GiB is told as not sent.
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    opcode::Send::new(socket.fd(), bytes.as_ptr(), length).flags(flags as i32).build().flags(socket.flags)
}

/// Lets pass what is no error of a submission: time was up, a signal came, or completions must be taken first.
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
    fn sockets_are_registered_where_the_kernel_lets_go_of_them() {
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

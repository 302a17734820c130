//! Buffers that the kernel receives into, shared by all connections of a ring. A connection holds one only
//! from the arrival of bytes until they are read, so that idle connections need none.
//!
//! Each has a message: a header, a receive timestamp if the kernel noted one, and the bytes.
//!
//! The kernel takes buffers from a ring in shared memory ("provided buffer ring", Linux 5.19) and reports in
//! the completion which one it filled. The reader returns a buffer by writing it at the ring's tail.

use crate::network::rx_timestamp;
use io_uring::types::{BufRingEntry, RecvMsgOut};
use nix::libc::msghdr;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::mem;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// Number of buffers: a power of two, as the kernel requires.
const BUFFERS: u16 = 128;
/// Size of each buffer in bytes: a TLS record with its header fits into two.
const BUFFER_BYTES: usize = 16 * 1024;
/// From the start of one buffer to that of the next, bytes: an odd number of cache lines. The kernel fills the buffers in turn, and
/// short messages at multiples of a page would share a few sets of the caches, which do not hold those of all buffers.
const STRIDE_BYTES: usize = BUFFER_BYTES + 17 * 64;
/// The kernel requires the ring to be page-aligned; no page is larger than this.
const RING_ALIGNMENT: usize = 64 * 1024;

/// The receive buffers of a ring.
pub(super) struct Buffers {
    ring: NonNull<BufRingEntry>,
    memory: NonNull<u8>,
    /// The parts of a message: no address, and room for a timestamp.
    parts: Box<msghdr>,
    /// Position at which the next buffer is returned; wraps around.
    tail: u16,
}

// SAFETY: this value alone owns the memory, whichever thread holds it; no other part of this process accesses
// it.
#[allow(unsafe_code)]
unsafe impl Send for Buffers {}

#[allow(unsafe_code)]
impl Buffers {
    /// Group ID under which the buffer ring is registered.
    pub(super) const GROUP: u16 = 0;

    pub(super) fn new() -> Self {
        // SAFETY: neither layout has the size 0.
        let (ring, memory) =
            unsafe { (alloc_zeroed(Self::ring_layout()), alloc_zeroed(Self::memory_layout())) };
        let ring = NonNull::new(ring).unwrap_or_else(|| handle_alloc_error(Self::ring_layout()));
        let memory = NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(Self::memory_layout()));
        // SAFETY: it consists of integers and pointers, which may be null.
        let mut parts: Box<msghdr> = Box::new(unsafe { mem::zeroed() });
        parts.msg_controllen = rx_timestamp::NOTE_BYTES as _;
        let mut buffers = Self { ring: ring.cast(), memory, parts, tail: 0 };
        for buffer in 0..BUFFERS {
            buffers.give_back(buffer);
        }
        buffers
    }

    /// Address and number of entries of the ring, as registered with the kernel.
    pub(super) fn ring(&self) -> (u64, u16) {
        (self.ring.as_ptr() as u64, BUFFERS)
    }

    /// The parts that receives have, for the kernel, which may read them as long as a receive is in progress.
    pub(super) fn parts(&self) -> *const msghdr {
        &raw const *self.parts
    }

    /// The bytes of a message and their receive timestamp, in the first `length` bytes of a buffer that the kernel has handed out
    /// and that is not returned yet.
    pub(super) fn message(&self, buffer: u16, length: usize) -> (&[u8], Option<Duration>) {
        let bytes = self.bytes(buffer, length);
        let Ok(message) = RecvMsgOut::parse(bytes, &self.parts) else { return (&[], None) };
        let payload = message.payload_data().len();
        (&bytes[length - payload..], rx_timestamp::in_control_data(message.control_data()))
    }

    fn bytes(&self, buffer: u16, length: usize) -> &[u8] {
        assert!(buffer < BUFFERS && length <= BUFFER_BYTES, "the kernel fills buffers that it was given");
        // SAFETY: within `memory`, by the check above. Nothing writes there: the kernel has handed the buffer
        // out, and it is returned through `&mut self`, when no borrow of it is left.
        unsafe { slice::from_raw_parts(self.memory.as_ptr().add(usize::from(buffer) * STRIDE_BYTES), length) }
    }

    /// Returns a buffer to the kernel.
    pub(super) fn give_back(&mut self, buffer: u16) {
        assert!(buffer < BUFFERS, "the kernel names buffers that it was given");
        let index = usize::from(self.tail % BUFFERS);
        // SAFETY: `index` is within the ring. The kernel reads entries only up to the tail, which is advanced
        // below: there are as many entries as buffers, and no buffer is in the ring twice. The entry is
        // written by field, because the tail of the ring lies in an unused field of the first one. The
        // address is within `memory`.
        unsafe {
            let entry = &mut *self.ring.as_ptr().add(index);
            entry.set_addr(self.memory.as_ptr().add(usize::from(buffer) * STRIDE_BYTES) as u64);
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(buffer);
        }
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail is 2 aligned bytes in the first entry, which the kernel only reads. There is no
        // other reference to it: the one above has ended.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(self.ring.as_ptr()).cast_mut()) };
        // The entry is complete before the kernel sees it.
        tail.store(self.tail, Ordering::Release);
    }

    fn ring_layout() -> Layout {
        Layout::array::<BufRingEntry>(usize::from(BUFFERS))
            .and_then(|layout| layout.align_to(RING_ALIGNMENT))
            .expect("a few kilobytes")
    }

    fn memory_layout() -> Layout {
        Layout::from_size_align(usize::from(BUFFERS) * STRIDE_BYTES, RING_ALIGNMENT).expect("a few megabytes")
    }
}

#[allow(unsafe_code)]
impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with these layouts. The owner of a ring that uses them drops them after
        // it, when no operation is in progress.
        unsafe {
            dealloc(self.ring.as_ptr().cast(), Self::ring_layout());
            dealloc(self.memory.as_ptr(), Self::memory_layout());
        }
    }
}

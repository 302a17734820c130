//! Buffers that the kernel receives into, shared by all connections of a ring: a connection holds one only from the
//! moment when bytes have come for it until they are read, so that idle connections need none.
//!
//! The kernel takes buffers from a ring in memory that both sides see ("provided buffer ring", Linux 5.19) and tells in
//! the completion which one it filled; who has read it gives it back by writing it at the ring's tail.

use io_uring::types::BufRingEntry;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{AtomicU16, Ordering};

/// How many buffers there are: a power of two, as the kernel wants it.
const BUFFERS: u16 = 128;
/// Bytes of each: a record of TLS and its head go into two.
const BUFFER_BYTES: usize = 16 * 1024;
/// The kernel wants the ring at the start of a page; no page is larger.
const RING_ALIGNMENT: usize = 64 * 1024;

/// See the module.
pub(super) struct Buffers {
    ring: NonNull<BufRingEntry>,
    memory: NonNull<u8>,
    /// Where the next buffer is given back; counts on and on.
    tail: u16,
}

// SAFETY: the memory belongs to this value alone, whichever thread holds it; no other part of this process sees it.
#[allow(unsafe_code)]
unsafe impl Send for Buffers {}

#[allow(unsafe_code)]
impl Buffers {
    /// The number under which the ring of buffers is registered.
    pub(super) const GROUP: u16 = 0;

    pub(super) fn new() -> Self {
        // SAFETY: neither layout has the size 0.
        let (ring, memory) =
            unsafe { (alloc_zeroed(Self::ring_layout()), alloc_zeroed(Self::memory_layout())) };
        let ring = NonNull::new(ring).unwrap_or_else(|| handle_alloc_error(Self::ring_layout()));
        let memory = NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(Self::memory_layout()));
        let mut buffers = Self { ring: ring.cast(), memory, tail: 0 };
        for buffer in 0..BUFFERS {
            buffers.give_back(buffer);
        }
        buffers
    }

    /// Where the ring begins, and how many entries it has: what the kernel is told.
    pub(super) fn ring(&self) -> (u64, u16) {
        (self.ring.as_ptr() as u64, BUFFERS)
    }

    /// The first `length` bytes of a buffer that the kernel has handed out and that is not given back.
    pub(super) fn bytes(&self, buffer: u16, length: usize) -> &[u8] {
        assert!(buffer < BUFFERS && length <= BUFFER_BYTES, "the kernel fills buffers that it was given");
        // SAFETY: inside of `memory`, by the check above. Nobody writes there: the kernel has handed the buffer out, and
        // it is given back through `&mut self`, when no borrow of it is left.
        unsafe { slice::from_raw_parts(self.memory.as_ptr().add(usize::from(buffer) * BUFFER_BYTES), length) }
    }

    /// The kernel may fill it again.
    pub(super) fn give_back(&mut self, buffer: u16) {
        assert!(buffer < BUFFERS, "the kernel names buffers that it was given");
        let index = usize::from(self.tail % BUFFERS);
        // SAFETY: `index` is inside of the ring. The kernel reads entries up to the tail alone, which is raised below: as
        // many buffers as there are entries are never all in it twice. The entry is written by field, since the tail of the
        // ring lies in an unused field of the first one. The address is inside of `memory`.
        unsafe {
            let entry = &mut *self.ring.as_ptr().add(index);
            entry.set_addr(self.memory.as_ptr().add(usize::from(buffer) * BUFFER_BYTES) as u64);
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(buffer);
        }
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail is 2 aligned bytes in the first entry, which the kernel only reads, and for which there is no
        // other reference: the one above has ended.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(self.ring.as_ptr()).cast_mut()) };
        // The entry is whole before the kernel sees that there is one.
        tail.store(self.tail, Ordering::Release);
    }

    fn ring_layout() -> Layout {
        Layout::array::<BufRingEntry>(usize::from(BUFFERS))
            .and_then(|layout| layout.align_to(RING_ALIGNMENT))
            .expect("a few kilobytes")
    }

    fn memory_layout() -> Layout {
        Layout::from_size_align(usize::from(BUFFERS) * BUFFER_BYTES, RING_ALIGNMENT).expect("a few megabytes")
    }
}

#[allow(unsafe_code)]
impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with these layouts. Who holds a ring on them drops them after it, when nothing is on
        // its way any more.
        unsafe {
            dealloc(self.ring.as_ptr().cast(), Self::ring_layout());
            dealloc(self.memory.as_ptr(), Self::memory_layout());
        }
    }
}

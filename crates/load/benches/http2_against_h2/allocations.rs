//! Allocations of a thread, counted by this program's allocator: the system's with a counter in front.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Counts what it passes on. The counter is the thread's own, which costs both contenders a nanosecond per allocation.
struct Counting;

// SAFETY: every call is the system allocator's, with the same arguments. Counting does not allocate: the counter needs neither
// initialisation nor a destructor.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are those that `System` needs.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, bytes) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

fn count() {
    // The counter is gone while its thread ends.
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
}

/// Allocations of this thread so far; an enlarged block counts again.
pub fn of_this_thread() -> u64 {
    COUNT.with(Cell::get)
}

//! The service as small in memory as what it still runs.
//!
//! Reading options, and what the dynamic linker does, touch some 3 MB of program text that serving never needs again, and
//! the kernel maps sixteen pages for each one touched. Unmapping them all once the service is ready leaves resident what
//! serving touches from then on. The pages stay in the page cache: coming back to one costs a minor fault, no reading.

use rustix::mm::{Advice, madvise};
use std::ffi::c_void;
use std::fs;
use std::ptr::with_exposed_provenance_mut;

/// Unmaps the pages of program text, of the program and its libraries alike. Where that cannot be done, they stay.
///
/// Breakpoints that a debugger set before this are lost with the pages that held them.
pub fn unmap_touched() {
    let Ok(maps) = fs::read_to_string("/proc/self/maps") else { return };
    for (start, end) in maps.lines().filter_map(program_text) {
        unmap(start, end - start);
    }
}

/// The addresses of a line of `/proc/self/maps` where it is text of a file: executable, private, not writable.
fn program_text(line: &str) -> Option<(usize, usize)> {
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let of_file = words.next()? == "r-xp" && words.nth(3)?.starts_with('/');
    let address = |text| usize::from_str_radix(text, 16).ok();
    if of_file { Some((address(start)?, address(end)?)) } else { None }
}

#[allow(unsafe_code)]
fn unmap(start: usize, length: usize) {
    let pages: *mut c_void = with_exposed_provenance_mut(start);
    // SAFETY: the kernel just listed this range as a private mapping of a file that is not writable, so its pages hold what
    // the file holds and nothing that is only in memory. `LinuxDontNeed` drops them from this process; the next access
    // maps the same content again (madvise(2)). Were the mapping gone by now, the call would fail without effect: nothing
    // else in this single-threaded start maps memory there.
    let _ = unsafe { madvise(pages, length, Advice::LinuxDontNeed) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_of_files_is_program_text() {
        let line = "55716dd0c000-55716df00000 r-xp 00211000 fe:00 1234   /usr/bin/mesh meter";
        assert_eq!(program_text(line), Some((0x5571_6dd0_c000, 0x5571_6df0_0000)));
        for line in [
            "55716dd0c000-55716df00000 r--p 00211000 fe:00 1234   /usr/bin/meshmeter",
            "55716dd0c000-55716df00000 rwxp 00211000 fe:00 1234   /usr/bin/meshmeter",
            "55716dd0c000-55716df00000 r-xs 00211000 fe:00 1234   /usr/bin/meshmeter",
            "7fe234704000-7fe234706000 r-xp 00000000 00:00 0      [vdso]",
            "7fe234704000-7fe234706000 r-xp 00000000 00:00 0",
            "",
        ] {
            assert_eq!(program_text(line), None, "{line}");
        }
    }
}

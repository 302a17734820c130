//! Reduces the resident memory of the service to what it uses while it serves.
//!
//! Parsing options and dynamic linking touch some 3 MB of program text and constants that serving never needs
//! again, and the kernel maps sixteen pages for each one touched. Unmapping them all once the service is
//! ready leaves resident what serving touches from then on. The pages stay in the page cache: touching one
//! again costs a minor fault, not a read. Half of the heap is what parsing has freed.

use rustix::mm::{Advice, madvise};
use std::ffi::c_void;
use std::fs;
use std::ptr::with_exposed_provenance_mut;

/// Gives back memory that only the start needed: free memory of the heap, and pages of program text and
/// constants, of the program and its libraries alike. What cannot be given back stays resident.
///
/// Breakpoints that a debugger has set before are lost with their pages.
pub fn give_back() {
    trim_heap();
    let Ok(maps) = fs::read_to_string("/proc/self/smaps") else { return };
    for (start, end) in clean_pages_of_files(&maps) {
        unmap(start, end - start);
    }
}

#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
fn trim_heap() {
    // SAFETY: it gives back pages without allocations alone, and may be called at any time by any thread (malloc_trim(3)).
    unsafe { nix::libc::malloc_trim(0) };
}

/// Other libraries have no such call.
#[cfg(not(target_env = "gnu"))]
fn trim_heap() {}

/// Address ranges of mappings that only hold file content: private, not writable, and without a page that was
/// written before (as the linker's relocations are).
fn clean_pages_of_files(maps: &str) -> Vec<(usize, usize)> {
    let mut clean = Vec::new();
    let mut mapping = None;
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("Anonymous:"), Some("0")) => clean.extend(mapping.take()),
            (Some(field), _) if field.ends_with(':') => {}
            _ => mapping = mapping_of_file(line),
        }
    }
    clean
}

/// Address range in the first line of a mapping, if it is a private mapping of a file and not writable.
fn mapping_of_file(line: &str) -> Option<(usize, usize)> {
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let of_file = matches!(words.next()?, "r-xp" | "r--p") && words.nth(3)?.starts_with('/');
    let address = |text| usize::from_str_radix(text, 16).ok();
    if of_file { Some((address(start)?, address(end)?)) } else { None }
}

#[allow(unsafe_code)]
fn unmap(start: usize, length: usize) {
    let pages: *mut c_void = with_exposed_provenance_mut(start);
    // SAFETY: the kernel just listed this range as a private mapping of a file that is not writable and has no page of its
    // own (Anonymous: 0), so its pages hold what the file holds and nothing that is only in memory. `LinuxDontNeed` drops
    // them from this process; the next access maps the same content again (madvise(2)). Were the mapping gone by now, the
    // call would fail without effect: nothing else in this single-threaded start maps memory there, or writes to it.
    let _ = unsafe { madvise(pages, length, Advice::LinuxDontNeed) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clean_file_mappings_are_unmapped() {
        let mapping = |line: &str, anonymous_kb: u32| {
            format!(
                "{line}\nSize:                956 kB\nAnonymous:             {anonymous_kb} kB\nVmFlags: rd ex mr mw me\n"
            )
        };
        let text = "55716dd0c000-55716df00000 r-xp 00211000 fe:00 1234   /usr/bin/mesh meter";
        let constants = "55716df00000-55716df10000 r--p 00000000 fe:00 1234   /usr/bin/meshmeter";
        let maps = [
            mapping(text, 0),
            mapping(constants, 0),
            // Relocated by the linker; with a breakpoint; data; the kernel's; anonymous.
            mapping("55716df10000-55716df20000 r--p 00000000 fe:00 1234   /usr/bin/meshmeter", 16),
            mapping("55716df20000-55716df30000 r-xp 00211000 fe:00 1234   /usr/bin/meshmeter", 4),
            mapping("55716df30000-55716df40000 rwxp 00211000 fe:00 1234   /usr/bin/meshmeter", 0),
            mapping("7fe234704000-7fe234706000 r-xp 00000000 00:00 0      [vdso]", 0),
            mapping("7fe234704000-7fe234706000 r-xp 00000000 00:00 0", 0),
        ];
        let expected = [(0x5571_6dd0_c000, 0x5571_6df0_0000), (0x5571_6df0_0000, 0x5571_6df1_0000)];
        assert_eq!(clean_pages_of_files(&maps.concat()), expected);
        assert_eq!(clean_pages_of_files(""), []);
        assert_eq!(clean_pages_of_files("Anonymous: 0 kB\nnonsense\n"), []);
    }
}

//! Options of the linker that make the program a quarter smaller.

use std::env;
use std::path::Path;
use std::process::Command;

/// Script of the linker beside this file. A panic says where it is and aborts: nothing unwinds.
const NO_UNWIND_TABLES: &str = "no-unwind-tables.ld";

/// `scripts` is the directory of this file. None unless the linker is the LLD that comes with rustc: for this target alone, and if
/// nobody names another.
pub fn options_for_size(scripts: &Path) -> Vec<String> {
    let target = "x86_64-unknown-linux-gnu";
    let is_target = env::var("TARGET").is_ok_and(|found| found == target);
    if !is_target || env::var_os("RUSTC_LINKER").is_some() {
        return Vec::new();
    }
    // Functions of the same instructions stand once.
    let mut options = vec!["--icf=all".to_owned()];
    let script = scripts.join(NO_UNWIND_TABLES).display().to_string();
    // The compiler that links splits options at commas.
    if !script.contains(',') {
        options.extend(["--no-eh-frame-hdr".to_owned(), format!("-T,{script}")]);
    }
    // Addresses to relocate are a bit each, instead of 24 bytes.
    if env::var("HOST").is_ok_and(|host| host == target)
        && libc_version().is_some_and(|version| version >= (2, 36))
    {
        options.push("-zpack-relative-relocs".to_owned());
    }
    options
}

/// Of this machine's glibc, which runs what is compiled here. An older one does not load packed relocations.
fn libc_version() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    parse(&String::from_utf8(output.stdout).ok()?)
}

/// Of "glibc 2.36".
pub fn parse(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    let minor = minor.split('.').next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

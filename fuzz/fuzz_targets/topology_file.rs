#![no_main]

#[path = "../src/topology_file.rs"]
mod topology_file;

libfuzzer_sys::fuzz_target!(|input: &[u8]| topology_file::check(input));

#![no_main]

#[path = "../src/traffic_file.rs"]
mod traffic_file;

libfuzzer_sys::fuzz_target!(|input: &[u8]| traffic_file::check(input));

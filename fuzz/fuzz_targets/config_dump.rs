#![no_main]

#[path = "../src/config_dump.rs"]
mod config_dump;

libfuzzer_sys::fuzz_target!(|input: &[u8]| config_dump::check(input));

#![no_main]

#[path = "../src/zds.rs"]
mod zds;

libfuzzer_sys::fuzz_target!(|input: &[u8]| zds::check(input));

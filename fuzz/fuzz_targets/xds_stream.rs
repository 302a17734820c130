#![no_main]

#[path = "../src/xds.rs"]
mod xds;

libfuzzer_sys::fuzz_target!(|input: &[u8]| xds::check(input));

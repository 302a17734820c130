#![no_main]

#[path = "../src/trials.rs"]
mod trials;

libfuzzer_sys::fuzz_target!(|input: &[u8]| trials::check(input));

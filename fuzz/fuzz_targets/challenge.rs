#![no_main]

#[path = "../src/challenge.rs"]
mod challenge;

libfuzzer_sys::fuzz_target!(|input: &[u8]| challenge::check(input));

#![no_main]

#[path = "../src/exposition.rs"]
mod exposition;

libfuzzer_sys::fuzz_target!(|input: &[u8]| exposition::check(input));

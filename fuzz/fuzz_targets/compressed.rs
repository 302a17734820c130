#![no_main]

#[path = "../src/compressed.rs"]
mod compressed;

libfuzzer_sys::fuzz_target!(|input: &[u8]| compressed::check(input));

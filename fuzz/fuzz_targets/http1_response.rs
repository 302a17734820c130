#![no_main]

#[path = "../src/http1.rs"]
mod http1;

libfuzzer_sys::fuzz_target!(|input: &[u8]| http1::check(input));

#![no_main]

#[path = "../src/http3.rs"]
mod http3;

libfuzzer_sys::fuzz_target!(|input: &[u8]| http3::check(input));

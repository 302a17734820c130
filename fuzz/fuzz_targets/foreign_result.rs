#![no_main]

#[path = "../src/foreign_result.rs"]
mod foreign_result;

libfuzzer_sys::fuzz_target!(|input: &[u8]| foreign_result::check(input));

#![no_main]

#[path = "../src/load_results.rs"]
mod load_results;

libfuzzer_sys::fuzz_target!(|input: &[u8]| load_results::check(input));

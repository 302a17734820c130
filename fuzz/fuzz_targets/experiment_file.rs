#![no_main]

#[path = "../src/experiment_file.rs"]
mod experiment_file;

libfuzzer_sys::fuzz_target!(|input: &[u8]| experiment_file::check(input));

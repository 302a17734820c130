#![no_main]

#[path = "../src/manifest.rs"]
mod manifest;

libfuzzer_sys::fuzz_target!(|input: &[u8]| manifest::check(input));

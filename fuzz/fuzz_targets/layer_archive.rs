#![no_main]

#[path = "../src/layer.rs"]
mod layer;

libfuzzer_sys::fuzz_target!(|input: &[u8]| layer::check(input));

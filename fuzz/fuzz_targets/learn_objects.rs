#![no_main]

#[path = "../src/learn_objects.rs"]
mod learn_objects;

libfuzzer_sys::fuzz_target!(|input: &[u8]| learn_objects::check(input));

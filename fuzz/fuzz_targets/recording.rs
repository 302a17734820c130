#![no_main]

#[path = "../src/recording.rs"]
mod recording;

libfuzzer_sys::fuzz_target!(|input: &[u8]| recording::check(input));

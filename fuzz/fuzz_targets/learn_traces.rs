#![no_main]

#[path = "../src/learn_traces.rs"]
mod learn_traces;
#[path = "../src/learned.rs"]
mod learned;

libfuzzer_sys::fuzz_target!(|input: &[u8]| learn_traces::check(input));

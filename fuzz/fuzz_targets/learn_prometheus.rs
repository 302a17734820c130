#![no_main]

#[path = "../src/learn_prometheus.rs"]
mod learn_prometheus;
#[path = "../src/learned.rs"]
mod learned;

libfuzzer_sys::fuzz_target!(|input: &[u8]| learn_prometheus::check(input));

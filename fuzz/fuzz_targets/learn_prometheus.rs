#![no_main]

#[path = "../src/learn_prometheus.rs"]
mod learn_prometheus;

libfuzzer_sys::fuzz_target!(|input: &[u8]| learn_prometheus::check(input));

#![no_main]

#[path = "../src/kubelet.rs"]
mod kubelet;

libfuzzer_sys::fuzz_target!(|input: &[u8]| kubelet::check(input));

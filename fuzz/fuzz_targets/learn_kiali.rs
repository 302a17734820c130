#![no_main]

#[path = "../src/learn_kiali.rs"]
mod learn_kiali;
#[path = "../src/learned.rs"]
mod learned;

libfuzzer_sys::fuzz_target!(|input: &[u8]| learn_kiali::check(input));

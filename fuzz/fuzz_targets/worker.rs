#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| cluster::check_worker(input));

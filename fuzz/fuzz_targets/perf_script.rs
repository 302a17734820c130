#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| lab::profile::check_perf_script(input));

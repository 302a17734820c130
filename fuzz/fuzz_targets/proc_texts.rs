#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| lab::observe::check_proc_texts(input));

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| grpc::check_reflection(input));

#![no_main]

#[path = "../src/docker_config.rs"]
mod docker_config;

libfuzzer_sys::fuzz_target!(|input: &[u8]| docker_config::check(input));

//! Invariants of any configuration file of Docker. Included by the fuzz target
//! and by the test that replays the corpus.

pub fn check(input: &[u8]) {
    images::check_docker_config(input);
}

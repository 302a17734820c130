//! Invariants of any topology file. Included by the fuzz target and by the test that replays the corpus.

use experiment::topology::file::{MAX_FILE_BYTES, read};

/// Limit on the text of an error, bytes.
const MAX_SHOWN_BYTES: usize = 10_000;

pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match read(text, "file") {
        Ok(topology) => {
            // Defaults stand in every service of what is written.
            let written = topology.to_yaml();
            if written.len() <= MAX_FILE_BYTES {
                let again = read(&written, "written")
                    .unwrap_or_else(|error| panic!("{}\nin\n{written}", error.render(false)));
                assert_eq!(again, topology, "{written}");
                assert_eq!(again.to_yaml(), written);
            }
            let copies = topology.clone().copies(2);
            assert_eq!(copies.workloads.len(), 2 * topology.workloads.len());
            let (one, two) = (topology.expected_of_all(), copies.expected_of_all());
            assert_eq!(one.is_ok(), two.is_ok());
        }
        Err(error) => {
            let shown = error.render(true);
            assert!(!shown.is_empty() && shown.len() < MAX_SHOWN_BYTES, "{} bytes", shown.len());
        }
    }
}

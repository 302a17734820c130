//! Invariants of any manifest or index of a registry. Included by the fuzz target and by the test that replays the corpus.

/// Content types of a response.
const TYPES: [&str; 4] = [
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "",
];

/// The first byte says which content type the response has.
pub fn check(input: &[u8]) {
    let Some((first, document)) = input.split_first() else { return };
    images::check_manifest(document, TYPES[usize::from(*first) % TYPES.len()]);
}

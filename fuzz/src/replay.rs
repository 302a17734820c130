//! Inputs that a fuzzer found worth keeping, once more. Included by the tests of the crates that are fuzzed.

use std::fs;
use std::path::Path;

/// Tests of corpora: the name of each, its folder in `fuzz/corpus`, and the check.
#[allow(unused_macros, reason = "a test may also call `replay`")]
macro_rules! corpora {
    ($($test:ident: $target:literal, $check:path;)+) => {
        $(
            #[test]
            fn $test() {
                replay::replay($target, $check);
            }
        )+
    };
}

#[allow(clippy::print_stdout, reason = "shown where it fails: names the input; unit tests may print anyway")]
pub fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut replayed = 0;
    for entry in fs::read_dir(&folder).expect("the corpus is part of the repository") {
        let path = entry.expect("a folder that can be read").path();
        println!("{}", path.display());
        check(&fs::read(&path).expect("a file that can be read"));
        replayed += 1;
    }
    assert!(replayed >= 10, "{replayed} inputs in {}", folder.display());
}

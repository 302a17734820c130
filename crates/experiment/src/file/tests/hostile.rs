//! No input makes the reader panic or take long.

use super::{FULL, NoFiles, Override, SMALL};
use crate::definition::Experiment;
use proptest::prelude::*;

#[test]
fn hostile_files_end_quickly() {
    let deep = "[".repeat(100_000);
    let deep_block: String = (0..1000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..30 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    let long_line = format!("name: {}", "y".repeat(900_000));
    let huge = "x".repeat(2 << 20);
    for text in [&deep, &deep_block, &bomb, &long_line, &huge] {
        let error = Experiment::parse(text, "hostile").unwrap_err();
        assert!(error.render(true).len() < 2000, "{}", error.render(true).len());
    }
}

#[test]
fn places_count_characters_and_bytes() {
    let error =
        Experiment::parse("name: ok\nquestion: \"é\"\nmodes: [ é ]\nload: {rate: 1000}\n", "x").unwrap_err();
    assert_eq!((error.line, error.column), (3, 10));
    assert_eq!(error.span, 33..35);
}

proptest! {
    #[test]
    fn reader_does_not_panic_on_any_text(text in "(?s).{0,200}") {
        let _ = Experiment::parse(&text, "any").map_err(|error| error.render(true));
    }

    #[test]
    fn reader_does_not_panic_on_yaml_like_text(text in "[a-z0-9 :,\\[\\]{}&*<>|'\"#%!\\n\\-.?]{0,120}") {
        let _ = Experiment::parse(&text, "any").map_err(|error| error.render(true));
    }

    #[test]
    fn reader_does_not_panic_on_mutated_files(
        cuts in prop::collection::vec((0_usize..600, 0_usize..12, "[ -~é\\n\\t]{0,4}"), 1..6),
    ) {
        let mut characters: Vec<char> = FULL.chars().collect();
        for (at, length, insert) in cuts {
            let start = at.min(characters.len());
            let end = (start + length).min(characters.len());
            characters.splice(start..end, insert.chars());
        }
        let text: String = characters.into_iter().collect();
        match Experiment::parse(&text, "mutated") {
            Ok(experiment) => {
                let again = Experiment::parse(&experiment.to_yaml(), "again");
                prop_assert_eq!(again.ok(), Some(experiment));
            }
            Err(error) => prop_assert!(!error.render(false).is_empty()),
        }
    }

    #[test]
    fn reader_does_not_panic_on_any_override(text in "[a-z.=\\[\\]{}0-9 é:,-]{0,40}") {
        let _ = Experiment::parse_with(SMALL, "x", &[Override::set(text)], &NoFiles).map_err(|error| error.render(true));
    }
}

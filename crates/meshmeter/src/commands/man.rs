//! `meshmeter man`: the manual pages, from the same definitions as the help.

use crate::cli::{Cli, ManArgs};
use crate::failure::Failure;
use clap::CommandFactory as _;
use std::fs;
use std::process::ExitCode;

/// Writes a page for the command and for each subcommand that the help shows.
pub fn run(args: &ManArgs) -> Result<ExitCode, Failure> {
    let folder = &args.out;
    fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
        .map_err(|error| Failure::broken(format!("write manual pages to {}: {error}", folder.display())))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Command;
    use std::collections::BTreeSet;

    /// File names of the pages of a command and its subcommands.
    fn pages(command: &Command, prefix: &str) -> Vec<String> {
        let name = format!("{prefix}{}", command.get_name());
        let below = command.get_subcommands().filter(|one| !one.is_hide_set());
        let mut pages: Vec<String> = below.flat_map(|one| pages(one, &format!("{name}-"))).collect();
        pages.push(format!("{name}.1"));
        pages
    }

    #[test]
    fn every_subcommand_has_a_page_with_its_options() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("man1");
        run(&ManArgs { out: out.clone() }).unwrap();
        let written: BTreeSet<String> = fs::read_dir(&out)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(written, pages(&Cli::command(), "").into_iter().collect());
        for page in ["meshmeter-run.1", "meshmeter-lab-install.1", "meshmeter-man.1", "meshmeter-schema.1"] {
            assert!(written.contains(page), "{page} is in {written:?}");
        }
        let text = fs::read_to_string(out.join("meshmeter-run.1")).unwrap();
        // Hyphens of options are escaped in roff.
        assert!(text.contains(r"\-\-dry\-run"), "{text}");
    }

    #[test]
    fn directory_that_cannot_be_made_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let failure = run(&ManArgs { out: file.path().join("man1") }).unwrap_err();
        assert!(format!("{failure:?}").contains("write manual pages to"), "{failure:?}");
    }

    #[test]
    fn completions_list_every_subcommand() {
        for shell in [clap_complete::Shell::Bash, clap_complete::Shell::Zsh, clap_complete::Shell::Fish] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "meshmeter", &mut script);
            let script = String::from_utf8(script).unwrap();
            for command in Cli::command().get_subcommands().filter(|one| !one.is_hide_set()) {
                assert!(script.contains(command.get_name()), "{shell}: {}", command.get_name());
            }
        }
    }
}

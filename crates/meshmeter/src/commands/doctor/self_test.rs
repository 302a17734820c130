//! `meshmeter doctor --self-test`: the generator against targets that follow a known law.

mod row;
mod scenarios;
mod target;

use crate::failure::{Failure, MEASUREMENT_FAILED};
use crate::interrupt;
use crate::output::{print, tell};
use std::process::ExitCode;

/// Runs every scenario and prints the table.
pub fn run(as_json: bool) -> Result<ExitCode, Failure> {
    let stop = interrupt::on_signals()?;
    let rows = scenarios::run(&stop, &mut |scenario| tell!("{scenario} …"))?;
    print(&if as_json { rows.json() } else { rows.text() })?;
    Ok(if rows.is_good() { ExitCode::SUCCESS } else { ExitCode::from(MEASUREMENT_FAILED) })
}

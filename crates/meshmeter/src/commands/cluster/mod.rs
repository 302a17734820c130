//! `meshmeter cluster`: what a run needs on a cluster, and what runs have left there.

mod attach;
mod check;
mod clean;
mod rbac;

use crate::cli::{ClusterArgs, ClusterCommand};
use crate::failure::Failure;
use serde_json::Value;
use std::fmt::Write as _;
use std::process::ExitCode;

pub fn run(args: &ClusterArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        ClusterCommand::Check(args) => check::run(args),
        ClusterCommand::Attach(args) => attach::run(args),
        ClusterCommand::Rbac(args) => rbac::run(args),
        ClusterCommand::Clean(args) => clean::run(args),
    }
}

/// Objects as YAML documents.
pub(super) fn documents(objects: &[Value]) -> String {
    let mut text = String::new();
    for object in objects {
        let yaml = serde_saphyr::to_string(object).expect("Kubernetes objects are plain data");
        let _ = write!(text, "---\n{yaml}");
    }
    text
}

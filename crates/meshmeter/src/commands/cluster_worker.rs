//! `meshmeter cluster-worker`: starts generators in a pod for a run, which sends its requests through a port
//! forward.

use crate::cli::ClusterWorkerArgs;
use crate::failure::{ENVIRONMENT_FAILED, Failure};
use crate::output::tell;
use cluster::worker::{WorkerEnd, WorkerOptions, end_proxy, run as run_worker};
use std::process::ExitCode;

pub fn run(args: &ClusterWorkerArgs) -> Result<ExitCode, Failure> {
    let options = WorkerOptions {
        program: "/proc/self/exe".into(),
        directory: args.directory.clone(),
        abandoned_after: args.abandoned_after,
    };
    let end = run_worker(args.port, options);
    if let Some(Err(error)) = args.end_proxy.as_deref().map(end_proxy) {
        tell!("the proxy in this pod was not shut down: {error}");
    }
    match end? {
        WorkerEnd::Finished => Ok(ExitCode::SUCCESS),
        WorkerEnd::Abandoned => {
            tell!("this worker received no request for a long time: it exits");
            Ok(ExitCode::from(ENVIRONMENT_FAILED))
        }
    }
}

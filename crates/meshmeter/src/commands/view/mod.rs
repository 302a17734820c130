//! `meshmeter view`: runs of a directory as pages on this machine.
//!
//! `server.rs` decides who is answered with what, `folder.rs` opens files below the directory and none outside, `found.rs` lists runs,
//! and `events.rs` follows them for open pages. The pages are those of [`report::html::view`].

mod events;
mod folder;
mod found;
mod server;

use super::serve::signals;
use crate::cli::ViewArgs;
use crate::failure::Failure;
use crate::{output, random};
use folder::Folder;
use server::Viewer;
use std::io::Read as _;
use std::net::{Ipv4Addr, TcpListener};
use std::process::ExitCode;

pub fn run(args: &ViewArgs) -> Result<ExitCode, Failure> {
    let failed = |error: std::io::Error| Failure::environment(&error);
    let about = format!("view {}", args.folder.display());
    Folder::open(&args.folder)
        .and_then(|folder| folder.folder(""))
        .map_err(|error| Failure::from_usage(&error).about(&about).with_hint("name a directory with runs"))?;
    let mut stop = signals().map_err(failed)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port))
        .map_err(|error| failed(error).about(&format!("listen on port {}", args.port)))?;
    let port = listener.local_addr().map_err(failed)?.port();
    let token = random::secret().map_err(|failure| failure.about("draw a secret"))?;
    let address = format!("http://127.0.0.1:{port}/{token}/\n");
    server::start(listener, Viewer::new(args.folder.clone(), token, port)).map_err(failed)?;
    output::print(&address)?;
    // Until a signal; the server ends with the process.
    stop.read_exact(&mut [0]).map_err(failed)?;
    Ok(ExitCode::SUCCESS)
}

//! An output that is written during the run, on a separate thread. A slow disk or reader never delays the
//! measurement, and results are kept even if the run is cut short.

use crate::failure::Failure;
use crate::output::destination::{Destination, ignore_broken_pipe};
use std::io::{self, Write as _};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

/// Text being written to a file or standard output. The length of a run bounds the backlog.
pub struct Stream {
    name: String,
    pieces: Sender<String>,
    writer: JoinHandle<io::Result<()>>,
}

impl Stream {
    /// Opens the output; an existing file is truncated.
    pub fn open(destination: &Destination) -> Result<Self, Failure> {
        let name = destination.name();
        let failed = |error: io::Error| Failure::environment(&error).about(&format!("write {name}"));
        let mut file = destination.open().map_err(failed)?;
        let (pieces, to_write) = channel::<String>();
        let write = move || {
            for piece in to_write {
                let written = file.write_all(piece.as_bytes()).and_then(|()| file.flush());
                if written.is_err() {
                    return ignore_broken_pipe(written);
                }
            }
            Ok(())
        };
        let writer = thread::Builder::new().name("output".to_owned()).spawn(write).map_err(failed)?;
        Ok(Self { name, pieces, writer })
    }

    /// Queues a piece for writing. If writing has failed, [`Self::close`] returns the error.
    pub fn write(&self, piece: String) {
        let _ = self.pieces.send(piece);
    }

    /// Waits until everything is written.
    pub fn close(self) -> Result<(), Failure> {
        let Self { name, pieces, writer } = self;
        drop(pieces);
        let written = writer.join().expect("writing does not panic");
        written.map_err(|error| Failure::environment(&error).about(&format!("write {name}")))
    }
}

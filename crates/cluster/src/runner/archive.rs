//! The run folder as a tar archive. A thread packs it while it is sent, so that it takes neither memory nor
//! disk of the pod. The folder of an ended run does not change, and its archive has a fixed order and no
//! times: a client whose connection broke continues at the byte where it was.

use hyper::body::{Body, Bytes, Frame};
use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::thread;
use tokio::sync::mpsc::{self, Receiver, Sender};

const PIECE_BYTES: usize = 64 << 10;
/// Maximum number of pieces that wait for the client.
const MAX_WAITING_PIECES: usize = 4;

/// A response body that a thread writes.
pub(crate) struct StreamedBody {
    pieces: Receiver<io::Result<Bytes>>,
    _transfer: Transfer,
}

impl StreamedBody {
    /// The archive of a folder from this byte on. It is empty if there is no folder.
    pub(super) fn of_folder(folder: &Path, from: u64, transfer: Transfer) -> Self {
        let (sender, pieces) = mpsc::channel(MAX_WAITING_PIECES);
        let folder = folder.to_owned();
        thread::spawn(move || {
            if let Err(error) = write_archive(&folder, from, &sender) {
                // The client may be gone.
                let _ = sender.blocking_send(Err(error));
            }
        });
        Self { pieces, _transfer: transfer }
    }
}

impl Body for StreamedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.pieces.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

/// Counts one transfer until it is dropped.
pub(super) struct Transfer(Rc<Cell<usize>>);

impl Transfer {
    pub(super) fn begin(count: &Rc<Cell<usize>>) -> Self {
        count.set(count.get() + 1);
        Self(Rc::clone(count))
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

fn write_archive(folder: &Path, from: u64, sender: &Sender<io::Result<Bytes>>) -> io::Result<()> {
    let pieces = PieceWriter { sender, skip_bytes: from };
    let mut archive = tar::Builder::new(BufWriter::with_capacity(PIECE_BYTES, pieces));
    archive.mode(tar::HeaderMode::Deterministic);
    if folder.is_dir() {
        append_folder(&mut archive, folder, Path::new(""))?;
    }
    archive.into_inner()?.flush()
}

/// Appends regular files and folders, sorted by name. A run writes nothing else.
fn append_folder(archive: &mut tar::Builder<impl Write>, folder: &Path, name: &Path) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (kind, path, name) = (entry.file_type()?, entry.path(), name.join(entry.file_name()));
        if kind.is_dir() {
            archive.append_dir(&name, &path)?;
            append_folder(archive, &path, &name)?;
        } else if kind.is_file() {
            archive.append_file(&name, &mut File::open(&path)?)?;
        }
    }
    Ok(())
}

/// Sends what is written, apart from its beginning.
struct PieceWriter<'a> {
    sender: &'a Sender<io::Result<Bytes>>,
    skip_bytes: u64,
}

impl Write for PieceWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let skipped = bytes.len().min(usize::try_from(self.skip_bytes).unwrap_or(usize::MAX));
        self.skip_bytes -= skipped as u64;
        if skipped < bytes.len() {
            let piece = Bytes::copy_from_slice(&bytes[skipped..]);
            let sent = self.sender.blocking_send(Ok(piece));
            sent.map_err(|_| io::Error::new(io::ErrorKind::BrokenPipe, "the client is gone"))?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

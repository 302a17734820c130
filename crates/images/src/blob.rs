//! A blob as a stream. It resumes after a broken connection and is verified against its digest at the end.

use std::io::{self, Read};

use bytes::{Buf, Bytes};
use http::{Method, StatusCode, header};
use reqwest::Response;

use crate::ImageError;
use crate::digest::Hasher;
use crate::manifest::Descriptor;
use crate::session::Session;

/// Maximum number of consecutive connections without data.
const MAX_EMPTY_CONNECTIONS: u32 = 3;
const MAX_CONNECTIONS: u32 = 20;

pub(crate) struct BlobReader<'s, 'a> {
    session: &'s Session<'a>,
    descriptor: &'s Descriptor,
    /// Only layers count as progress.
    is_layer: bool,
    response: Option<Response>,
    chunk: Bytes,
    received_bytes: u64,
    /// Remaining bytes that were received before, from a server without range requests.
    repeated_bytes: u64,
    hasher: Hasher,
    fruitless: u32,
    connections: u32,
}

impl<'s, 'a> BlobReader<'s, 'a> {
    pub(crate) fn layer(session: &'s Session<'a>, descriptor: &'s Descriptor) -> Result<Self, ImageError> {
        let reader = Self::new(session, descriptor, true, session.limits().layer_bytes)?;
        session.expect(descriptor.size);
        Ok(reader)
    }

    pub(crate) fn configuration(
        session: &'s Session<'a>,
        descriptor: &'s Descriptor,
    ) -> Result<Self, ImageError> {
        Self::new(session, descriptor, false, session.limits().manifest_bytes)
    }

    fn new(
        session: &'s Session<'a>,
        descriptor: &'s Descriptor,
        is_layer: bool,
        max_bytes: u64,
    ) -> Result<Self, ImageError> {
        let reader = Self {
            session,
            descriptor,
            is_layer,
            response: None,
            chunk: Bytes::new(),
            received_bytes: 0,
            repeated_bytes: 0,
            hasher: descriptor.digest.hasher(),
            fruitless: 0,
            connections: 0,
        };
        if descriptor.size > max_bytes {
            let size = descriptor.size;
            return Err(session
                .invalid(format!("{} has {size} bytes, more than the {max_bytes} allowed", reader.name())));
        }
        Ok(reader)
    }

    /// Name in error messages.
    fn name(&self) -> String {
        format!("{} {}", if self.is_layer { "layer" } else { "configuration" }, self.descriptor.digest)
    }

    /// Reads the rest and compares the digest.
    pub(crate) fn finish(mut self) -> Result<(), ImageError> {
        while self.fetch()? {}
        let name = self.name();
        let found = self.hasher.finish();
        if found == self.descriptor.digest {
            return Ok(());
        }
        // A read may have ended exactly at the blob's size.
        let more = self.response.as_mut().map(|response| self.session.next_chunk(response)).transpose()?;
        if matches!(more, Some(Ok(Some(chunk))) if !chunk.is_empty()) {
            return Err(too_long(self.session, &name, self.descriptor.size));
        }
        Err(self.session.wrong_digest(format!("{name} came with other content, {found}")))
    }

    /// Fetches the next chunk; `false` at the end.
    fn fetch(&mut self) -> Result<bool, ImageError> {
        while self.received_bytes < self.descriptor.size {
            let mut response = match self.response.take() {
                Some(response) => response,
                None => self.connect()?,
            };
            match self.session.next_chunk(&mut response)? {
                Ok(Some(chunk)) => {
                    self.response = Some(response);
                    if self.take(chunk)? {
                        return Ok(true);
                    }
                }
                Ok(None) => self.note_break(None)?,
                Err(reason) => self.note_break(Some(reason))?,
            }
        }
        Ok(false)
    }

    /// Consumes a chunk; `false` if all of it was received before.
    fn take(&mut self, mut chunk: Bytes) -> Result<bool, ImageError> {
        let known = self.repeated_bytes.min(chunk.len() as u64);
        self.repeated_bytes -= known;
        chunk.advance(known as usize);
        if chunk.is_empty() {
            return Ok(false);
        }
        let length = chunk.len() as u64;
        if length > self.descriptor.size - self.received_bytes {
            return Err(too_long(self.session, &self.name(), self.descriptor.size));
        }
        self.hasher.update(&chunk);
        self.received_bytes += length;
        if self.is_layer {
            self.session.received(length);
        }
        self.fruitless = 0;
        self.chunk = chunk;
        Ok(true)
    }

    /// Requests the missing bytes.
    fn connect(&mut self) -> Result<Response, ImageError> {
        self.connections += 1;
        let path = format!("{}/blobs/{}", self.session.image.repository(), self.descriptor.digest);
        let response = self.session.request(&Method::GET, &path, "*/*", self.received_bytes)?;
        let status = response.status();
        if status == StatusCode::RANGE_NOT_SATISFIABLE {
            return Err(self.truncated());
        }
        if status == StatusCode::PARTIAL_CONTENT {
            let range = response.headers().get(header::CONTENT_RANGE).and_then(|range| range.to_str().ok());
            let expected = format!("bytes {}-", self.received_bytes);
            if self.received_bytes == 0 || !range.is_some_and(|range| range.starts_with(&expected)) {
                return Err(self
                    .session
                    .invalid("it sends another part of a layer than the requested one".to_owned()));
            }
            self.repeated_bytes = 0;
        } else {
            self.repeated_bytes = self.received_bytes;
            if let Some(length) = response.content_length().filter(|length| *length != self.descriptor.size) {
                let (name, size) = (self.name(), self.descriptor.size);
                return Err(self
                    .session
                    .wrong_digest(format!("{name} comes with {length} bytes, not with its {size}")));
            }
        }
        Ok(response)
    }

    /// Records that a connection ended before the blob did. Without a `reason` it was closed properly.
    fn note_break(&mut self, reason: Option<String>) -> Result<(), ImageError> {
        self.fruitless += 1;
        if self.fruitless >= MAX_EMPTY_CONNECTIONS || self.connections >= MAX_CONNECTIONS {
            let Some(reason) = reason else { return Err(self.truncated()) };
            let (came, size) = (self.received_bytes, self.descriptor.size);
            let broke =
                format!("the connection broke {} times, last after {came} of {size} bytes", self.connections);
            return Err(self.session.unreachable(format!("{broke}: {reason}")));
        }
        self.session.pause(self.session.backoff(self.fruitless - 1))
    }

    fn truncated(&self) -> ImageError {
        let (came, size) = (self.received_bytes, self.descriptor.size);
        self.session.wrong_digest(format!("{} ends after {came} of its {size} bytes", self.name()))
    }
}

fn too_long(session: &Session<'_>, name: &str, size: u64) -> ImageError {
    session.wrong_digest(format!("{name} is longer than its {size} bytes"))
}

/// Errors are stored in the session.
impl Read for BlobReader<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.chunk.is_empty() && !self.fetch().map_err(|error| self.session.fail(error))? {
            return Ok(0);
        }
        let count = buffer.len().min(self.chunk.len());
        self.chunk.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}

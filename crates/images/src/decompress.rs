//! Uncompressed bytes of a layer: gzip, Zstandard or plain, which is detected from its first bytes.

use std::io::{self, BufRead, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::FrameDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};

/// Maximum memory for the window of a Zstandard frame.
const MAX_WINDOW_BYTES: u64 = 128 << 20;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Second to fourth byte of a skippable frame. The first is `0x50` to `0x5f`: magic numbers are `0x184d2a50`
/// to `0x184d2a5f`, little-endian.
const SKIPPABLE_MAGIC: [u8; 3] = [0x2a, 0x4d, 0x18];

pub(crate) fn uncompressed<'a>(mut source: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let mut start = [0; 4];
    let mut length = 0;
    while length < start.len() {
        let count = source.read(&mut start[length..])?;
        if count == 0 {
            break;
        }
        length += count;
    }
    let is_gzip = start.starts_with(&GZIP_MAGIC);
    let is_zstd = start == ZSTD_MAGIC || (start[0] & 0xf0 == 0x50 && start[1..] == SKIPPABLE_MAGIC);
    let whole = io::Cursor::new(start).take(length as u64).chain(source);
    Ok(if is_gzip {
        Box::new(MultiGzDecoder::new(whole))
    } else if is_zstd {
        Box::new(ZstdReader::new(whole))
    } else {
        Box::new(whole)
    })
}

/// Reads `bytes` like a layer's, and checks that how they arrive does not matter. For fuzzing.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn check_compressed(bytes: &[u8]) {
    const MAX_READ_BYTES: u64 = 1 << 20;
    let read = |source: &mut dyn BufRead| {
        let mut content = Vec::new();
        let result =
            uncompressed(source).and_then(|reader| reader.take(MAX_READ_BYTES).read_to_end(&mut content));
        (content, result.is_ok())
    };
    let (whole, is_valid) = read(&mut &*bytes);
    let (in_pieces, is_valid_in_pieces) = read(&mut io::BufReader::with_capacity(5, bytes));
    assert_eq!(is_valid, is_valid_in_pieces);
    // Of a damaged stream, a decoder may keep what it read last.
    assert!(!is_valid || whole == in_pieces);
}

/// All frames of a Zstandard stream, one after the other.
struct ZstdReader<R> {
    source: R,
    decoder: FrameDecoder,
}

impl<R: BufRead> ZstdReader<R> {
    fn new(source: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_WINDOW_BYTES);
        Self { source, decoder }
    }

    /// `false` at the end of the stream.
    fn start_frame(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped = io::copy(&mut (&mut self.source).take(length.into()), &mut io::sink())?;
                    if skipped < length.into() {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }
}

impl<R: BufRead> Read for ZstdReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.decoder.can_collect() > 0 {
                return self.decoder.read(buffer);
            }
            if !self.decoder.is_finished() {
                let one = ruzstd::decoding::BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.source, one).map_err(io::Error::other)?;
            } else if !self.start_frame()? {
                return Ok(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    const MAX_READ_BYTES: u64 = 1 << 20;

    fn read_all(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        uncompressed(bytes)?.read_to_end(&mut content)?;
        Ok(content)
    }

    fn content() -> Vec<u8> {
        (0..300_000_u32).flat_map(|number| (number / 7).to_le_bytes()).collect()
    }

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(content: &[u8]) -> Vec<u8> {
        compress_to_vec(content, CompressionLevel::Fastest)
    }

    #[test]
    fn plain_and_short_content_is_unchanged() {
        for content in [&b""[..], b"a", b"abc", b"a longer text"] {
            assert_eq!(read_all(content).unwrap(), content);
        }
    }

    #[test]
    fn all_members_of_stream_are_read() {
        let content = content();
        let twice = [content.clone(), content.clone()].concat();
        assert_eq!(read_all(&gzip(&content).repeat(2)).unwrap(), twice);
        let skippable = [&[0x5c, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
        let frames =
            [skippable.clone(), zstd(&content), skippable.clone(), zstd(&content), skippable].concat();
        assert_eq!(read_all(&frames).unwrap(), twice);
    }

    #[test]
    fn truncated_stream_is_error() {
        let content = content();
        for compressed in [gzip(&content), zstd(&content)] {
            assert!(read_all(&compressed[..compressed.len() / 2]).is_err());
        }
    }

    proptest! {
        #[test]
        fn damaged_streams_are_content_or_error(
            words in prop::collection::vec("[a-z]{1,9}", 0..400),
            damages in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            is_gzip in any::<bool>(),
        ) {
            let content = words.join(" ").into_bytes();
            let mut compressed = if is_gzip { gzip(&content) } else { zstd(&content) };
            for (at, value) in damages {
                let at = at.index(compressed.len());
                compressed[at] = value;
            }
            let mut read = Vec::new();
            if let Ok(reader) = uncompressed(&compressed[..]) {
                let _ = reader.take(MAX_READ_BYTES).read_to_end(&mut read);
            }
        }

        #[test]
        fn any_bytes_after_magic_number_are_content_or_error(rest in prop::collection::vec(any::<u8>(), 0..300)) {
            for magic in [&GZIP_MAGIC[..], &ZSTD_MAGIC, &[0x50, 0x2a, 0x4d, 0x18]] {
                let mut read = Vec::new();
                let bytes = [magic, &rest].concat();
                if let Ok(reader) = uncompressed(&bytes[..]) {
                    let _ = reader.take(MAX_READ_BYTES).read_to_end(&mut read);
                }
            }
        }
    }
}

//! What a QUIC connection and its protocol exchange as bytes: events and commands of streams, each a head of fixed size, of which those of
//! data have that data behind them.

/// Kinds of records.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum RecordKind {
    /// To the protocol: a request may be sent on this stream.
    Room,
    /// To the protocol: so many requests are allowed at a time (number), fewer than wanted.
    Limited,
    /// Bytes of a stream (number of them).
    Data,
    /// To the transport: the same, and the stream ends with them.
    Last,
    /// To the protocol: the stream has ended.
    End,
    /// The stream was given up, or is to be, with an error code (number).
    Reset,
    /// To the transport: the peer shall send no more of the stream; error code.
    Stop,
    /// To the transport: the connection shall end; error code.
    Close,
}

/// Size of a record without its data, bytes.
pub(crate) const HEAD_BYTES: usize = 17;

/// The head of a record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct RecordHead {
    pub(crate) kind: RecordKind,
    pub(crate) stream: u64,
    pub(crate) number: u64,
}

impl RecordHead {
    pub(crate) fn to_bytes(self) -> [u8; HEAD_BYTES] {
        let mut bytes = [self.kind as u8; HEAD_BYTES];
        bytes[1..9].copy_from_slice(&self.stream.to_ne_bytes());
        bytes[9..].copy_from_slice(&self.number.to_ne_bytes());
        bytes
    }

    /// Reads what this program wrote: there are no other kinds.
    fn parse(bytes: &[u8; HEAD_BYTES]) -> Option<Self> {
        use RecordKind::{Close, Data, End, Last, Limited, Reset, Room, Stop};
        let (kind, rest) = bytes.split_first()?;
        let (stream, rest) = rest.split_first_chunk()?;
        let kinds = [Room, Limited, Data, Last, End, Reset, Stop, Close];
        Some(Self {
            kind: kinds[usize::from(*kind).min(kinds.len() - 1)],
            stream: u64::from_ne_bytes(*stream),
            number: u64::from_ne_bytes(*rest.first_chunk()?),
        })
    }
}

/// Appends a record without data.
pub fn push(kind: RecordKind, stream: u64, number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&RecordHead { kind, stream, number }.to_bytes());
}

/// Appends a record of the data that `write` appends. `kind`: [`RecordKind::Data`] or [`RecordKind::Last`].
pub fn push_data(kind: RecordKind, stream: u64, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD_BYTES]);
    write(out);
    let number = (out.len() - start - HEAD_BYTES) as u64;
    let head = RecordHead { kind, stream, number };
    out[start..start + HEAD_BYTES].copy_from_slice(&head.to_bytes());
}

/// Splits a sequence of records, however it is cut.
#[derive(Debug, Default)]
pub(crate) struct RecordReader {
    head: Vec<u8>,
    /// Data that is still to come: its stream, size, and whether the stream ends with it.
    data: Option<(u64, u64, bool)>,
}

/// A record, or a part of its data.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Record<'b> {
    /// Data of a stream, which ends with it if so flagged.
    Data(u64, &'b [u8], bool),
    Other(RecordHead),
}

impl RecordReader {
    /// The record at the start of `bytes`, or the next part of one: the number of bytes taken, and the record; `None` if there is more to come
    /// and all is taken.
    pub(crate) fn next<'b>(&mut self, bytes: &'b [u8]) -> (usize, Option<Record<'b>>) {
        let mut taken = 0;
        if self.data.is_none() {
            let step = (HEAD_BYTES - self.head.len()).min(bytes.len());
            self.head.extend_from_slice(&bytes[..step]);
            taken = step;
            let Some(head) = self.head.first_chunk().and_then(RecordHead::parse) else {
                return (taken, None);
            };
            self.head.clear();
            let ends = match head.kind {
                RecordKind::Data => false,
                RecordKind::Last => true,
                _ => return (taken, Some(Record::Other(head))),
            };
            self.data = Some((head.stream, head.number, ends));
        }
        let Some((stream, left, ends)) = self.data else { return (taken, None) };
        let rest = &bytes[taken..];
        let data = &rest[..usize::try_from(left).unwrap_or(usize::MAX).min(rest.len())];
        if data.is_empty() && left > 0 {
            return (taken, None);
        }
        let left = left - data.len() as u64;
        self.data = (left > 0).then_some((stream, left, ends));
        (taken + data.len(), Some(Record::Data(stream, data, ends && left == 0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_the_same_however_they_are_cut() {
        let mut bytes = Vec::new();
        push(RecordKind::Room, 4, 0, &mut bytes);
        push_data(RecordKind::Data, 8, &mut bytes, |out| out.extend_from_slice(b"a "));
        push_data(RecordKind::Last, 8, &mut bytes, |out| out.extend_from_slice(b"request"));
        push(RecordKind::Reset, 8, 0x10c, &mut bytes);
        for step in 1..bytes.len() {
            let (mut reader, mut others) = (RecordReader::default(), Vec::new());
            let (mut data, mut has_ended) = (Vec::new(), false);
            for mut part in bytes.chunks(step) {
                while !part.is_empty() {
                    let (taken, record) = reader.next(part);
                    part = &part[taken..];
                    match record {
                        Some(Record::Data(8, bytes, ends)) => {
                            assert!(!has_ended, "nothing comes after the last data");
                            data.extend_from_slice(bytes);
                            has_ended = ends;
                        }
                        Some(Record::Other(head)) => others.push((head.kind, head.stream, head.number)),
                        Some(other) => panic!("{other:?}"),
                        None => assert!(part.is_empty()),
                    }
                }
            }
            assert_eq!((&data[..], has_ended), (&b"a request"[..], true), "{step}");
            assert_eq!(others, [(RecordKind::Room, 4, 0), (RecordKind::Reset, 8, 0x10c)], "{step}");
        }
    }
}

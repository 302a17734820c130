//! Reads a protobuf message that arrives in chunks, and only those of its fields that a schema lists.
//!
//! Only short strings are buffered: a field that is not in the schema is skipped as it arrives. Memory usage
//! is therefore the same for a message of 100 bytes and of 10 MB. A broken resource does not break the
//! message around it: it is reported, and reading continues after it.

/// The fields of a message to read, by number.
pub(super) struct Schema(pub(super) &'static [(u32, Step)]);

/// How to read a field.
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// A message with fields of interest.
    Message(Slot, &'static Schema),
    /// An `Any` with messages of interest, by type URL.
    Any(&'static [(&'static str, &'static Schema)]),
    /// The `Any` of a resource.
    Resource,
    /// A string.
    Text(Slot),
    /// A varint.
    Number(Slot),
    /// A field of which only the presence matters.
    Present(Slot),
}

/// Meaning of a field to the visitor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Slot {
    /// Version of a response.
    Version,
    /// Type URL of a response.
    TypeUrl,
    /// Nonce of a response.
    Nonce,
    /// Name of a removed resource.
    Removed,
    /// Delta: the wrapper of a resource with its name.
    Wrapper,
    /// Delta: name of a resource.
    WrapperName,
    /// Delta: version of a resource.
    WrapperVersion,
    /// The `Any` of a resource.
    Resource,
    /// Name within a resource.
    Name,
    /// Discovery type of a cluster.
    ClusterType,
    /// A cluster's config source of endpoints.
    EndpointsSource,
    /// Name of a cluster's endpoints.
    EndpointsName,
    /// A listener's config source of routes.
    RoutesSource,
    /// Name of a listener's routes.
    RoutesName,
    /// Config source of a secret.
    SecretSource,
    /// Name of a secret.
    SecretName,
    /// Name of a filter.
    FilterName,
    /// A filter's config source.
    FilterSource,
    /// A config source other than the aggregated stream.
    OtherSource,
    /// A route of a virtual host.
    Route,
    /// A message without a meaning of its own.
    Inner,
}

/// Receives the fields.
pub(super) trait Visitor {
    /// A message begins.
    fn enter(&mut self, slot: Slot);
    /// A message has ended.
    fn leave(&mut self, slot: Slot);
    /// A string.
    fn text(&mut self, slot: Slot, text: &str);
    /// A varint.
    fn number(&mut self, slot: Slot, value: u64);
    /// A field is present.
    fn present(&mut self, slot: Slot);
    /// Type URL of a resource, which precedes its content. Returns the schema of the content, if it is to be read.
    fn resource_type(&mut self, url: &str) -> Option<&'static Schema>;
    /// Bytes of a resource's content, passed before the fields in them; `last` is true for the final ones.
    fn content(&mut self, bytes: &[u8], last: bool);
    /// The content of the resource is not valid protobuf.
    fn broken(&mut self);
}

/// The message is not valid protobuf.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Malformed;

/// Maximum length of a string: names and versions are shorter.
const MAX_TEXT_BYTES: u64 = 64 << 10;

#[derive(Clone, Copy)]
struct Frame {
    end: u64,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Message(Slot, &'static Schema),
    Any { candidates: &'static [(&'static str, &'static Schema)], chosen: Option<&'static Schema> },
    Resource { chosen: Option<&'static Schema> },
    Content(&'static Schema),
}

#[derive(Clone, Copy)]
enum State {
    Tag,
    Number(Option<Slot>),
    Length(Target),
    Skip { end: u64 },
    Text { target: Target, end: u64 },
}

#[derive(Clone, Copy)]
enum Target {
    Step(Step),
    AnyTypeUrl,
    AnyValue,
    Nothing,
}

/// State of reading one message.
pub(super) struct Walker {
    offset: u64,
    frames: Vec<Frame>,
    state: State,
    varint: u64,
    varint_bits: u32,
    text: Vec<u8>,
    content_end: Option<u64>,
}

impl Walker {
    /// Creates a reader for a message of this length.
    pub(super) fn new(schema: &'static Schema, length: u64) -> Self {
        let mut frames = Vec::with_capacity(8);
        frames.push(Frame { end: length, kind: Kind::Message(Slot::Inner, schema) });
        Self {
            offset: 0,
            frames,
            state: State::Tag,
            varint: 0,
            varint_bits: 0,
            text: Vec::new(),
            content_end: None,
        }
    }

    /// Bytes still to come.
    pub(super) fn remaining(&self) -> u64 {
        self.frames[0].end - self.offset
    }

    /// Reads the next bytes, at most [`Self::remaining`].
    pub(super) fn feed(&mut self, bytes: &[u8], visitor: &mut impl Visitor) -> Result<(), Malformed> {
        self.deliver_content(bytes, visitor);
        let mut input = bytes;
        loop {
            if matches!(self.state, State::Tag) && self.varint_bits == 0 {
                self.leave_ended(visitor);
            }
            if input.is_empty() {
                return Ok(());
            }
            if self.step(&mut input, visitor).is_err() {
                self.skip_broken_content(visitor)?;
            }
        }
    }

    /// Called when the message has ended.
    pub(super) fn finish(&self) -> Result<(), Malformed> {
        let at_field = matches!(self.state, State::Tag) && self.varint_bits == 0;
        if at_field && self.remaining() == 0 { Ok(()) } else { Err(Malformed) }
    }

    fn deliver_content(&mut self, bytes: &[u8], visitor: &mut impl Visitor) {
        let Some(end) = self.content_end else { return };
        let left = end - self.offset;
        let length = at_most(left, bytes);
        visitor.content(&bytes[..length], length as u64 == left);
        if length as u64 == left {
            self.content_end = None;
        }
    }

    fn leave_ended(&mut self, visitor: &mut impl Visitor) {
        while self.frames.len() > 1 && self.end() == self.offset {
            let Some(frame) = self.frames.pop() else { return };
            match frame.kind {
                Kind::Message(slot, _) => visitor.leave(slot),
                Kind::Resource { .. } => visitor.leave(Slot::Resource),
                Kind::Any { .. } | Kind::Content(_) => {}
            }
        }
    }

    /// Stops reading the resource, if the broken data is inside one.
    fn skip_broken_content(&mut self, visitor: &mut impl Visitor) -> Result<(), Malformed> {
        let content = self.frames.iter().rposition(|frame| matches!(frame.kind, Kind::Content(_)));
        let depth = content.ok_or(Malformed)?;
        self.frames.truncate(depth + 1);
        self.varint = 0;
        self.varint_bits = 0;
        self.text.clear();
        self.state = State::Skip { end: self.end() };
        visitor.broken();
        // The skip may already be complete.
        self.end_skip();
        Ok(())
    }

    fn end(&self) -> u64 {
        self.frames.last().map_or(0, |frame| frame.end)
    }

    fn step(&mut self, input: &mut &[u8], visitor: &mut impl Visitor) -> Result<(), Malformed> {
        match self.state {
            State::Tag => {
                if let Some(tag) = self.take_varint(input)? {
                    self.state = self.field(tag)?;
                }
            }
            State::Number(slot) => {
                if let Some(value) = self.take_varint(input)? {
                    if let Some(slot) = slot {
                        visitor.number(slot, value);
                    }
                    self.state = State::Tag;
                }
            }
            State::Length(target) => {
                if let Some(length) = self.take_varint(input)? {
                    self.begin(target, length, input, visitor)?;
                }
            }
            State::Skip { end } => {
                let length = at_most(end - self.offset, input);
                self.advance(input, length);
                self.end_skip();
            }
            State::Text { target, end } => {
                let length = at_most(end - self.offset, input);
                self.text.extend_from_slice(&input[..length]);
                self.advance(input, length);
                if self.offset == end {
                    let text = std::mem::take(&mut self.text);
                    self.state = State::Tag;
                    self.deliver_text(target, &text, visitor)?;
                }
            }
        }
        Ok(())
    }

    fn advance(&mut self, input: &mut &[u8], length: usize) {
        *input = &input[length..];
        self.offset += length as u64;
    }

    fn end_skip(&mut self) {
        if let State::Skip { end } = self.state
            && end == self.offset
        {
            self.state = State::Tag;
        }
    }

    /// The varint, once its last byte has arrived.
    fn take_varint(&mut self, input: &mut &[u8]) -> Result<Option<u64>, Malformed> {
        let end = self.end();
        while let Some((&byte, _)) = input.split_first() {
            if self.offset == end || self.varint_bits > 63 {
                return Err(Malformed);
            }
            self.advance(input, 1);
            self.varint |= u64::from(byte & 0x7f) << self.varint_bits;
            self.varint_bits += 7;
            if byte < 0x80 {
                self.varint_bits = 0;
                return Ok(Some(std::mem::take(&mut self.varint)));
            }
        }
        Ok(None)
    }

    fn field(&self, tag: u64) -> Result<State, Malformed> {
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0).ok_or(Malformed)?;
        Ok(match tag & 7 {
            0 => State::Number(self.number_slot(number)),
            1 => State::Skip { end: self.bounded(8)? },
            2 => State::Length(self.target(number)),
            5 => State::Skip { end: self.bounded(4)? },
            _ => return Err(Malformed),
        })
    }

    fn bounded(&self, length: u64) -> Result<u64, Malformed> {
        let end = self.offset.checked_add(length).ok_or(Malformed)?;
        if end > self.end() { Err(Malformed) } else { Ok(end) }
    }

    fn read_step(&self, number: u32) -> Option<Step> {
        let (Kind::Message(_, schema) | Kind::Content(schema)) = self.frames.last()?.kind else {
            return None;
        };
        schema.0.iter().find(|(field, _)| *field == number).map(|(_, step)| *step)
    }

    fn number_slot(&self, number: u32) -> Option<Slot> {
        match self.read_step(number) {
            Some(Step::Number(slot)) => Some(slot),
            _ => None,
        }
    }

    fn target(&self, number: u32) -> Target {
        match (self.frames.last().map(|frame| frame.kind), number) {
            (Some(Kind::Any { .. } | Kind::Resource { .. }), 1) => Target::AnyTypeUrl,
            (Some(Kind::Any { .. } | Kind::Resource { .. }), 2) => Target::AnyValue,
            _ => match self.read_step(number) {
                None | Some(Step::Number(_)) => Target::Nothing,
                Some(step) => Target::Step(step),
            },
        }
    }

    /// Begins a length-delimited field.
    fn begin(
        &mut self,
        target: Target,
        length: u64,
        input: &mut &[u8],
        visitor: &mut impl Visitor,
    ) -> Result<(), Malformed> {
        let end = self.bounded(length)?;
        self.state = State::Tag;
        let kind = match target {
            Target::Step(Step::Text(_)) | Target::AnyTypeUrl => {
                return self.begin_text(target, end, input, visitor);
            }
            Target::Step(Step::Message(slot, schema)) => {
                visitor.enter(slot);
                Kind::Message(slot, schema)
            }
            Target::Step(Step::Any(candidates)) => Kind::Any { candidates, chosen: None },
            Target::Step(Step::Resource) => {
                visitor.enter(Slot::Resource);
                Kind::Resource { chosen: None }
            }
            Target::AnyValue => match self.frames.last().map(|frame| frame.kind) {
                Some(Kind::Any { chosen: Some(schema), .. }) => Kind::Message(Slot::Inner, schema),
                Some(Kind::Resource { chosen: Some(schema) }) => {
                    self.frames.push(Frame { end, kind: Kind::Content(schema) });
                    self.content_end = Some(end);
                    self.deliver_content(input, visitor);
                    return Ok(());
                }
                _ => return self.begin_skip(end),
            },
            Target::Step(Step::Present(slot)) => {
                visitor.present(slot);
                return self.begin_skip(end);
            }
            Target::Step(Step::Number(_)) | Target::Nothing => return self.begin_skip(end),
        };
        self.frames.push(Frame { end, kind });
        Ok(())
    }

    #[expect(clippy::unnecessary_wraps, reason = "ends the match of a function that can fail")]
    fn begin_skip(&mut self, end: u64) -> Result<(), Malformed> {
        self.state = State::Skip { end };
        self.end_skip();
        Ok(())
    }

    fn begin_text(
        &mut self,
        target: Target,
        end: u64,
        input: &mut &[u8],
        visitor: &mut impl Visitor,
    ) -> Result<(), Malformed> {
        if end - self.offset > MAX_TEXT_BYTES {
            return Err(Malformed);
        }
        let bytes = *input;
        let length = at_most(end - self.offset, bytes);
        if self.offset + length as u64 == end {
            self.advance(input, length);
            return self.deliver_text(target, &bytes[..length], visitor);
        }
        self.state = State::Text { target, end };
        Ok(())
    }

    fn deliver_text(
        &mut self,
        target: Target,
        text: &[u8],
        visitor: &mut impl Visitor,
    ) -> Result<(), Malformed> {
        let text = std::str::from_utf8(text).map_err(|_| Malformed)?;
        if let Target::Step(Step::Text(slot)) = target {
            visitor.text(slot, text);
        } else if let Some(frame) = self.frames.last_mut() {
            match &mut frame.kind {
                Kind::Resource { chosen } => *chosen = visitor.resource_type(text),
                Kind::Any { candidates, chosen } => {
                    let found = candidates.iter().find(|(url, _)| *url == text);
                    *chosen = found.map(|(_, schema)| *schema);
                }
                Kind::Message(..) | Kind::Content(_) => {}
            }
        }
        Ok(())
    }
}

/// `left`, limited to the number of bytes available.
fn at_most(left: u64, bytes: &[u8]) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len())
}

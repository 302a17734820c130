//! Parts of a response that are kept until its end, for those who look into it.

/// Maximum size of the part of a body that is kept, bytes.
pub(crate) const MAX_KEPT_BODY_BYTES: usize = 1 << 20;

/// Parts of the responses to a request that are kept.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Keep {
    /// The content, without transfer coding and as the server has encoded it.
    pub(crate) body: bool,
    /// The fields of the head.
    pub(crate) fields: bool,
}

impl Keep {
    /// An empty response to fill, if anything is kept.
    pub(crate) fn begin(self) -> Option<Box<KeptResponse>> {
        (self != Self::default())
            .then(|| Box::new(KeptResponse { keep: self, body: Vec::new(), fields: Vec::new() }))
    }
}

/// Name in lower case, and value.
pub(crate) type KeptField = (Box<[u8]>, Box<[u8]>);

/// Kept parts of a response.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptResponse {
    pub(crate) keep: Keep,
    /// Its first [`MAX_KEPT_BODY_BYTES`].
    pub(crate) body: Vec<u8>,
    /// In order.
    pub(crate) fields: Vec<KeptField>,
}

impl KeptResponse {
    /// A part of the content has arrived.
    pub(crate) fn content(&mut self, content: &[u8]) {
        if self.keep.body {
            let room = MAX_KEPT_BODY_BYTES - self.body.len();
            self.body.extend_from_slice(&content[..content.len().min(room)]);
        }
    }

    /// A field has arrived.
    pub(crate) fn field(&mut self, name: &[u8], value: &[u8]) {
        if self.keep.fields {
            self.fields.push((name.to_ascii_lowercase().into(), value.into()));
        }
    }
}

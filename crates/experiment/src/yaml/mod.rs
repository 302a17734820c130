//! YAML of experiment and topology files, read key by key: nodes with source positions ([`document`]), their maps and
//! scalars ([`section`]), and "did you mean" ([`suggestion`]); and YAML to be written ([`written`]).

pub(crate) mod document;
pub(crate) mod section;
pub(crate) mod suggestion;
pub(crate) mod written;

//! Topology files: YAML in, a validated [`Topology`] out, and back.
//!
//! [`mod@keys`] has the keys. Reads two dialects: Meshmeter's own and isotope's ([`dialect`]). [`reader`] reads services and databases,
//! [`drivers`] drivers and clients, [`steps`] the scripts. [`links`] checks calls after all services are
//! known. [`writer`] writes a topology in Meshmeter's own format, which reads back to the same value.

mod dialect;
mod drivers;
pub(crate) mod keys;
mod limits;
mod links;
mod names;
mod reader;
mod steps;
mod writer;

#[cfg(test)]
mod tests;

use super::Topology;
use crate::diagnostic::{ExperimentError, Place, Source};
use crate::yaml::document::{self, Entry, Node, Value};
use std::sync::Arc;

pub(crate) use dialect::root_keys;
pub use keys::json_schema;
pub use limits::{
    MAX_BODY_BYTES, MAX_DRIVERS, MAX_FILE_BYTES, MAX_NESTING, MAX_PATH_LENGTH, MAX_PODS, MAX_REPLICAS,
    MAX_WORKLOADS,
};
pub use names::{MAX_NAME_LENGTH, MAX_NAMESPACE_LENGTH, fits_path, label};
pub(crate) use steps::{size_up_to, time_up_to};
pub(crate) use writer::view;

/// A topology file as read.
#[derive(Clone, Debug, PartialEq)]
pub struct TopologyFile {
    /// Its topology.
    pub topology: Topology,
    /// Notes on parts of the file that have no effect, as sentences.
    pub notes: Vec<String>,
}

impl TopologyFile {
    /// Reads a topology file, Meshmeter's own or isotope's. The file name is used in messages, and as the
    /// name of a topology without one.
    ///
    /// # Errors
    /// Returns the first error in the file, with its place.
    pub fn read(text: &str, file_name: &str) -> Result<Self, Box<ExperimentError>> {
        if text.len() > MAX_FILE_BYTES {
            return Err(Place::without_text(file_name).error(
                format!("the file is too large: {} bytes", text.len()),
                "a topology file has at most 1 MiB",
            ));
        }
        let source = Arc::new(Source { name: file_name.to_owned(), text: text.to_owned() });
        reader::read(&document::read(&source)?, &names::from_file_name(file_name))
    }

    /// Reads an inline topology of an experiment file. Keys in `except` are not part of the topology.
    pub(crate) fn read_inline(node: &Node, except: &[&str]) -> Result<Self, Box<ExperimentError>> {
        let own = |entry: &&Entry| !except.contains(&entry.key.as_str());
        let entries = node.entries().iter().filter(own).cloned().collect();
        let node = Node { place: node.place.clone(), value: Value::Map(entries) };
        reader::read(&node, names::INLINE)
    }
}

/// Reads a topology file, Meshmeter's own or isotope's. The file name is used in messages, and as the name of
/// a topology without one.
///
/// # Errors
/// Returns the first error in the file, with its place.
pub fn read(text: &str, file_name: &str) -> Result<Topology, Box<ExperimentError>> {
    TopologyFile::read(text, file_name).map(|file| file.topology)
}

impl Topology {
    /// Writes the topology in Meshmeter's own format. Any topology returned by [`read`] reads back to the
    /// same value. A synthetic service without a script is written as an equivalent endpoint.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        document::write(&view(self))
    }
}

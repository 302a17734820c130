//! A configuration, encoded once: all clients are sent slices of the same bytes.

use crate::protobuf::Message;
use crate::resources::{self, Collection, Resource};
use bytes::Bytes;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Field number of the resources, in responses of both variants.
const RESOURCES_FIELD: u32 = 2;

/// The configuration that a control plane holds.
#[derive(Clone, Debug)]
pub struct Configuration {
    types: Vec<Arc<TypedResources>>,
}

/// Resources of one type, with their positions in an encoded response.
#[derive(Clone, Debug)]
pub(crate) struct TypedResources {
    pub type_url: &'static str,
    names: HashMap<String, usize>,
    delta: Encoded,
    state_of_the_world: Encoded,
    /// Indexed by place; a removed resource leaves `None`.
    resources: Vec<Option<Resource>>,
}

/// Encoded response fields that hold the resources, in order.
#[derive(Clone, Debug, Default)]
struct Encoded {
    all: Bytes,
    ranges: Vec<Range<usize>>,
}

impl Configuration {
    /// Encodes resources.
    #[must_use]
    pub fn new(collections: Vec<Collection>) -> Self {
        Self { types: collections.into_iter().map(TypedResources::new).map(Arc::new).collect() }
    }

    /// Configuration of sidecars: about this many bytes each, without the name table.
    #[must_use]
    pub fn for_sidecars_of_bytes(bytes: usize) -> Self {
        Self::new(resources::for_sidecars(resources::services_for_bytes(bytes)))
    }

    /// Configuration of proxies of every kind, in a mesh of this many services.
    #[must_use]
    pub fn for_services(services: usize) -> Self {
        let mut collections = resources::for_sidecars(services);
        collections.extend(resources::for_ztunnels(services));
        collections.extend(resources::for_waypoints(services));
        Self::new(collections)
    }

    /// Size of all resources of a type in a delta response, in bytes.
    #[must_use]
    pub fn bytes_of_type(&self, type_url: &str) -> usize {
        self.find(type_url).map_or(0, |(_, found)| found.delta.all.len())
    }

    /// Adds a resource, replaces the one of the same name, or removes it. Returns the indices of the type and
    /// of the resource.
    ///
    /// # Errors
    /// Returns an error if the configuration has no resources of the type.
    pub(crate) fn set(
        &mut self,
        type_url: &str,
        name: &str,
        resource: Option<Resource>,
    ) -> Result<(usize, usize), String> {
        let position = self.find(type_url).ok_or_else(|| format!("no resources of {type_url}"))?.0;
        Ok((position, Arc::make_mut(&mut self.types[position]).set(name, resource)))
    }

    /// Number of types.
    pub(crate) fn types(&self) -> usize {
        self.types.len()
    }

    pub(crate) fn at(&self, position: usize) -> &TypedResources {
        &self.types[position]
    }

    pub(crate) fn find(&self, type_url: &str) -> Option<(usize, &TypedResources)> {
        self.types.iter().map(Arc::as_ref).enumerate().find(|(_, typed)| typed.type_url == type_url)
    }
}

impl TypedResources {
    fn new(collection: Collection) -> Self {
        let names = collection.resources.iter().enumerate();
        let names = names.map(|(index, resource)| (resource.name.clone(), index)).collect();
        let mut typed = Self {
            type_url: collection.type_url,
            names,
            delta: Encoded::default(),
            state_of_the_world: Encoded::default(),
            resources: collection.resources.into_iter().map(Some).collect(),
        };
        typed.encode();
        typed
    }

    fn set(&mut self, name: &str, resource: Option<Resource>) -> usize {
        let index = self.names.get(name).copied().unwrap_or_else(|| {
            self.names.insert(name.to_owned(), self.resources.len());
            self.resources.push(None);
            self.resources.len() - 1
        });
        self.resources[index] = resource;
        self.encode();
        index
    }

    fn encode(&mut self) {
        self.delta = Encoded::new(&self.resources, delta_field);
        self.state_of_the_world = Encoded::new(&self.resources, |resource| {
            Message::default().bytes(RESOURCES_FIELD, &resource.any)
        });
    }

    /// Index of a resource; `None` if it does not exist.
    pub fn index(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied().filter(|index| self.resources[*index].is_some())
    }

    /// Fields with all resources.
    pub fn all(&self, delta: bool) -> Bytes {
        self.encoded(delta).all.clone()
    }

    /// Fields with some resources: shared if they are consecutive, copied otherwise.
    pub fn some(&self, delta: bool, indices: &[usize]) -> Bytes {
        let encoded = self.encoded(delta);
        let (Some(first), Some(last)) = (indices.first(), indices.last()) else { return Bytes::new() };
        if indices.windows(2).all(|pair| pair[0] + 1 == pair[1]) {
            return encoded.all.slice(encoded.ranges[*first].start..encoded.ranges[*last].end);
        }
        let fields = indices.iter().map(|index| &encoded.all[encoded.ranges[*index].clone()]);
        fields.collect::<Vec<_>>().concat().into()
    }

    fn encoded(&self, delta: bool) -> &Encoded {
        if delta { &self.delta } else { &self.state_of_the_world }
    }
}

impl Encoded {
    fn new(resources: &[Option<Resource>], field: impl Fn(&Resource) -> Message) -> Self {
        let mut all = Vec::new();
        let ranges = resources
            .iter()
            .map(|resource| {
                let start = all.len();
                all.extend(resource.iter().flat_map(|resource| field(resource).encoded().to_vec()));
                start..all.len()
            })
            .collect();
        Self { all: all.into(), ranges }
    }
}

fn delta_field(resource: &Resource) -> Message {
    let value = Message::default().text(3, &resource.name).text(1, "1").bytes(2, &resource.any);
    Message::default().message(RESOURCES_FIELD, &value)
}

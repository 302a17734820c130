//! Reads one response as it arrives: it collects the names in it and keeps nothing else.

use super::contents::Contents;
use super::event::{Moment, Violation};
use super::holding::{Entry, Reference};
use super::marks::{MarkId, Marks};
use super::names::{EMPTY, NameId, Names};
use super::proxy::XdsVariant;
use super::scan::Scan;
use super::schema::{self, CLUSTER_TYPE_EDS};
use super::walker::{Malformed, Schema, Slot, Visitor, Walker};
use experiment::xds::ResourceType;

/// A response being received.
pub(super) struct Incoming {
    walker: Walker,
    pub(super) contents: Contents,
    resource: Resource,
}

/// The resource being read.
#[derive(Default)]
struct Resource {
    name: Option<NameId>,
    version: Option<NameId>,
    is_cluster_with_endpoints: bool,
    endpoints_name: Option<NameId>,
    endpoints_elsewhere: bool,
    /// Name and source of the reference being read.
    target: Option<NameId>,
    elsewhere: bool,
    filter_name: Option<NameId>,
    first_reference: usize,
    is_broken: bool,
}

impl Incoming {
    /// Called when a response of this length begins.
    pub(super) fn new(variant: XdsVariant, length: u64, names: &mut Names) -> Self {
        let schema = match variant {
            XdsVariant::Delta => &schema::DELTA_RESPONSE,
            XdsVariant::StateOfTheWorld => &schema::RESPONSE,
        };
        let contents = Contents::new(length, names.enter_reader());
        Self { walker: Walker::new(schema, length), contents, resource: Resource::default() }
    }

    /// Bytes still to come.
    pub(super) fn remaining(&self) -> u64 {
        self.walker.remaining()
    }

    /// Reads the next bytes.
    pub(super) fn feed(&mut self, bytes: &[u8], reading: Reading<'_>) -> Result<(), Malformed> {
        self.walker
            .feed(bytes, &mut Visit { contents: &mut self.contents, resource: &mut self.resource, reading })
    }

    /// Called when the response has ended.
    pub(super) fn finish(&self) -> Result<(), Malformed> {
        self.walker.finish()
    }
}

/// Context of a reader.
pub(super) struct Reading<'a> {
    pub(super) variant: XdsVariant,
    pub(super) names: &'a mut Names,
    pub(super) marks: &'a Marks,
    pub(super) expected: &'a [MarkId],
    pub(super) at: Moment,
}

struct Visit<'a> {
    contents: &'a mut Contents,
    resource: &'a mut Resource,
    reading: Reading<'a>,
}

impl Visit<'_> {
    fn intern(&mut self, text: &str) -> Option<NameId> {
        Some(self.reading.names.intern(text))
    }

    fn begin_resource(&mut self) {
        let first_reference = self.contents.references.len();
        *self.resource = Resource { first_reference, ..Resource::default() };
        if let Some(scan) = &mut self.contents.scan {
            scan.begin_resource();
        }
    }

    fn end_resource(&mut self) {
        self.contents.resources = self.contents.resources.saturating_add(1);
        let resource = std::mem::take(self.resource);
        let has_names = self.contents.resource_type.is_none_or(ResourceType::has_names);
        let name = resource.name.filter(|name| *name != EMPTY);
        if resource.is_broken {
            self.contents.violate(Violation::UndecodableResource);
        } else if name.is_none() && has_names {
            self.contents.violate(Violation::MissingName);
        }
        let Some(name) = name.or((!has_names).then_some(EMPTY)) else { return };
        self.add_endpoints_reference(&resource, name);
        for reference in &mut self.contents.references[resource.first_reference..] {
            reference.owner = name;
        }
        self.contents.entries.push(Entry { name, version: resource.version.unwrap_or(EMPTY) });
        if let Some(scan) = &mut self.contents.scan {
            scan.end_resource(self.reading.names.text(name), self.reading.at);
        }
    }

    fn add_endpoints_reference(&mut self, resource: &Resource, name: NameId) {
        if resource.is_cluster_with_endpoints && !resource.endpoints_elsewhere {
            let target = resource.endpoints_name.filter(|name| *name != EMPTY).unwrap_or(name);
            self.contents.references.push(Reference {
                owner: name,
                resource_type: ResourceType::Endpoints,
                target,
            });
        }
    }

    /// Called when a reference has been read.
    fn end_reference(&mut self, resource_type: ResourceType, target: Option<NameId>) {
        let elsewhere = self.resource.elsewhere;
        let Some(target) = target.filter(|target| *target != EMPTY && !elsewhere) else { return };
        self.contents.references.push(Reference { owner: EMPTY, resource_type, target });
    }
}

impl Visitor for Visit<'_> {
    fn enter(&mut self, slot: Slot) {
        let is_resource = match self.reading.variant {
            XdsVariant::Delta => Slot::Wrapper,
            XdsVariant::StateOfTheWorld => Slot::Resource,
        };
        if slot == is_resource {
            self.begin_resource();
        }
        match slot {
            Slot::RoutesSource | Slot::SecretSource | Slot::FilterSource | Slot::EndpointsSource => {
                self.resource.target = None;
                self.resource.elsewhere = false;
            }
            _ => {}
        }
    }

    fn leave(&mut self, slot: Slot) {
        match (slot, self.reading.variant) {
            (Slot::Wrapper, XdsVariant::Delta) | (Slot::Resource, XdsVariant::StateOfTheWorld) => {
                self.end_resource();
            }
            (Slot::EndpointsSource, _) => {
                self.resource.endpoints_elsewhere = self.resource.elsewhere;
            }
            (Slot::RoutesSource, _) => self.end_reference(ResourceType::Routes, self.resource.target),
            (Slot::SecretSource, _) => self.end_reference(ResourceType::Secrets, self.resource.target),
            (Slot::FilterSource, _) => {
                self.end_reference(ResourceType::ExtensionConfigs, self.resource.filter_name);
            }
            _ => {}
        }
    }

    fn text(&mut self, slot: Slot, text: &str) {
        match slot {
            Slot::Version => self.contents.version = text.into(),
            Slot::TypeUrl => self.contents.type_url = Some(text.to_owned()),
            Slot::Nonce => self.contents.nonce = text.into(),
            Slot::Removed => {
                let name = self.reading.names.intern(text);
                self.contents.removed.push(name);
            }
            Slot::WrapperName => self.resource.name = self.intern(text),
            Slot::WrapperVersion => self.resource.version = self.intern(text),
            // In the delta variant, the name is in the wrapper of the resource.
            Slot::Name if self.reading.variant == XdsVariant::StateOfTheWorld => {
                self.resource.name = self.intern(text);
            }
            Slot::EndpointsName => self.resource.endpoints_name = self.intern(text),
            Slot::RoutesName | Slot::SecretName => self.resource.target = self.intern(text),
            Slot::FilterName => self.resource.filter_name = self.intern(text),
            _ => {}
        }
    }

    fn number(&mut self, slot: Slot, value: u64) {
        if slot == Slot::ClusterType {
            self.resource.is_cluster_with_endpoints = value == CLUSTER_TYPE_EDS;
        }
    }

    fn present(&mut self, slot: Slot) {
        match slot {
            Slot::OtherSource => self.resource.elsewhere = true,
            Slot::Route => self.contents.routes = self.contents.routes.saturating_add(1),
            _ => {}
        }
    }

    fn resource_type(&mut self, url: &str) -> Option<&'static Schema> {
        let Some(resource_type) = ResourceType::from_url(url.as_bytes()) else {
            self.contents.violate(Violation::UnknownType);
            return None;
        };
        match self.contents.resource_type {
            None => {
                self.contents.resource_type = Some(resource_type);
                let reading = &self.reading;
                self.contents.scan = Scan::new(resource_type, reading.expected, reading.marks);
            }
            Some(first) if first != resource_type => self.contents.violate(Violation::MixedTypes),
            Some(_) => {}
        }
        Some(schema::of_resource(resource_type))
    }

    fn content(&mut self, bytes: &[u8], last: bool) {
        if let Some(scan) = &mut self.contents.scan {
            scan.content(bytes, last, self.reading.at);
        }
    }

    fn broken(&mut self) {
        self.resource.is_broken = true;
    }
}

//! A further domain, written while the gateway serves the others, and the time until the gateway serves it.

use crate::Result;
use experiment::environment::{ErrorContext as _, error_chain};
use experiment::schema::FurtherDomain as Measured;
use mesh::gateway_probe::GatewayProbe;
use mesh::kubernetes::object_set::ObjectSet;
use mesh::wait::wait_for;
use serde_json::Value;
use std::time::{Duration, Instant};

const SERVED_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct FurtherDomain {
    pub gateway: String,
    pub name: String,
    pub path: String,
    pub objects: Vec<Value>,
    pub probe: GatewayProbe,
}

impl FurtherDomain {
    /// Writes the domain, waits until the gateway serves it, and removes it again. An error from `check` ends
    /// the wait.
    pub fn measure(&self, objects: &mut ObjectSet, check: impl Fn() -> Result<()>) -> Measured {
        let (gateway, name) = (self.gateway.clone(), self.name.clone());
        let mut measured = Measured { gateway, name, written_s: None, in_force_s: None, failure: None };
        let result = self.put_in_force(objects, check, &mut measured);
        let removed = objects.remove_some(&self.objects);
        measured.failure = result.and(removed).err().map(|error| error_chain(&error));
        measured
    }

    fn put_in_force(
        &self,
        objects: &mut ObjectSet,
        check: impl Fn() -> Result<()>,
        measured: &mut Measured,
    ) -> Result<()> {
        let Self { gateway, name, path, .. } = self;
        let begun_at = Instant::now();
        objects.apply(&self.objects).context(format!("write the domain {name}"))?;
        let written_at = Instant::now();
        measured.written_s = Some((written_at - begun_at).as_secs_f64());
        wait_for(&format!("{gateway} serves {name}"), SERVED_TIMEOUT, || {
            check()?;
            Ok(self.probe.is_served(name, path).ok())
        })?;
        measured.in_force_s = Some(written_at.elapsed().as_secs_f64());
        Ok(())
    }
}

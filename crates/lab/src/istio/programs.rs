//! The programs and files that a mesh of Istio's runs from.

use crate::Result;
use crate::components::{Component, Installed, IstioFiles, Origin, Overrides, find, istio_files};
use experiment::environment::ErrorContext;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// What names a filter that Istio's build of Envoy has, and upstream's has not: part of the program's descriptors.
const ISTIOS_OWN: &[u8] = b"io.istio.http.peer_metadata";

#[derive(Clone, Debug)]
pub struct IstioPrograms {
    pub etcd: Installed,
    pub api_server: Installed,
    pub istiod: Installed,
    pub pilot_agent: Installed,
    pub envoy: Installed,
    /// Whether that Envoy has the filters that only Istio's own build has.
    pub is_istios_envoy: bool,
    /// The kinds of objects that Istio and the Gateway API add to the API, and the template of Envoy's bootstrap file.
    pub files: IstioFiles,
}

#[derive(Clone, Debug)]
pub struct AmbientPrograms {
    pub ztunnel: Installed,
    pub ambient_iptables: Installed,
}

impl AmbientPrograms {
    pub fn find(overrides: &Overrides) -> Result<Self> {
        Ok(Self {
            ztunnel: find(Component::Ztunnel, overrides)?,
            ambient_iptables: find(Component::AmbientIptables, overrides)?,
        })
    }
}

impl IstioPrograms {
    pub fn find(envoy: &Installed, overrides: &Overrides) -> Result<Self> {
        Ok(Self {
            etcd: find(Component::Etcd, overrides)?,
            api_server: find(Component::ApiServer, overrides)?,
            istiod: find(Component::Istiod, overrides)?,
            pilot_agent: find(Component::PilotAgent, overrides)?,
            envoy: envoy.clone(),
            is_istios_envoy: envoy.origin != Origin::Installed && is_istios_build(&envoy.path)?,
            files: istio_files()?,
        })
    }

    pub fn control_plane_and_agent(&self) -> [&Installed; 4] {
        [&self.istiod, &self.pilot_agent, &self.api_server, &self.etcd]
    }
}

/// Whether an Envoy is Istio's build of it. Its version does not say.
fn is_istios_build(envoy: &Path) -> Result<bool> {
    File::open(envoy)
        .and_then(|file| holds(file, ISTIOS_OWN))
        .context(format!("look whose build of Envoy {} is", envoy.display()))
}

fn holds(mut file: impl Read, wanted: &[u8]) -> io::Result<bool> {
    const PIECE_BYTES: usize = 1 << 20;
    let mut piece = Vec::with_capacity(PIECE_BYTES + wanted.len());
    loop {
        let read = file.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
        if piece.windows(wanted.len()).any(|window| window == wanted) {
            return Ok(true);
        }
        if read == 0 {
            return Ok(false);
        }
        // They may begin in this piece and end in the next.
        let keep = piece.len().min(wanted.len() - 1);
        piece.drain(..piece.len() - keep);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_across_the_pieces_of_a_file() {
        let mut program = vec![b'.'; (1 << 20) - 5];
        assert!(!holds(program.as_slice(), ISTIOS_OWN).unwrap());
        program.extend_from_slice(ISTIOS_OWN);
        program.extend_from_slice(&[0; 100]);
        assert!(holds(program.as_slice(), ISTIOS_OWN).unwrap());
        assert!(!holds(&b""[..], ISTIOS_OWN).unwrap());
    }
}

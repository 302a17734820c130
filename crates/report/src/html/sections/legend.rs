//! The legend of modes.

use crate::html::style::ModeStyle;
use crate::svg::Drawing;
use experiment::Mode;
use serde::Serialize;

/// A mode in the legend.
#[derive(Debug, Serialize)]
pub(super) struct LegendEntry {
    name: &'static str,
    meaning: &'static str,
    svg: String,
}

impl LegendEntry {
    pub(super) fn new(mode: Mode) -> Self {
        let meaning = match mode {
            Mode::None => "client and server talk directly: the floor",
            Mode::Gateway => "one proxy in a pod of its own",
            Mode::Sidecar => "a proxy in the client’s pod and one in the server’s",
            Mode::Ambient => "a node proxy (ztunnel) on both sides",
            Mode::AmbientWaypoint => "node proxies with a waypoint between them",
            Mode::Ingress => "into the mesh through an ingress gateway",
            Mode::EgressBypass => "out of the mesh, past the sidecar",
            Mode::EgressSidecar => "out of the mesh through the sidecar",
            Mode::EgressGateway => "out of the mesh through an egress gateway",
            Mode::EgressGatewayMtls => "through an egress gateway, mutual TLS up to it",
            Mode::EgressSni => "through an egress gateway with an SNI proxy",
            Mode::ControlPlane => "the control plane with a fleet of simulated proxies",
        };
        let style = ModeStyle::of(mode);
        let mut drawing = Drawing::new(28.0, 12.0);
        drawing.line((0.0, 6.0), (28.0, 6.0), &format!("curve {}", style.class));
        drawing.marker(style.marker, (14.0, 6.0), 4.0, &format!("mark {}", style.class), "");
        Self { name: mode.name(), meaning, svg: drawing.finish_decoration("swatch") }
    }
}

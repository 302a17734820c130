//! Appearance of modes: the same colour and marker in every chart of every report, so that two reports can be
//! compared side by side. The style sheet defines colours for light, dark and print.

use crate::svg::Marker;
use results::Mode;

/// CSS class and marker of a mode.
#[derive(Clone, Copy, Debug)]
pub struct ModeStyle {
    /// CSS class that sets the colour.
    pub class: &'static str,
    /// Shape that identifies the mode without colour.
    pub marker: Marker,
}

impl ModeStyle {
    /// Appearance of a mode. Modes that are rarely compared with each other may share a shape or a colour,
    /// never both.
    pub fn for_mode(mode: Mode) -> Self {
        let (class, marker) = match mode {
            Mode::None => ("grey", Marker::Circle),
            Mode::Gateway => ("blue", Marker::Square),
            Mode::Sidecar => ("vermilion", Marker::Triangle),
            Mode::Ambient => ("green", Marker::Diamond),
            Mode::AmbientWaypoint => ("purple", Marker::TriangleDown),
            Mode::Ingress => ("blue", Marker::Plus),
            Mode::EgressBypass => ("grey", Marker::Square),
            Mode::EgressSidecar => ("vermilion", Marker::Plus),
            Mode::EgressGateway => ("blue", Marker::Diamond),
            Mode::EgressGatewayMtls => ("purple", Marker::Triangle),
            Mode::EgressSni => ("green", Marker::TriangleDown),
            Mode::ControlPlane => ("blue", Marker::Circle),
        };
        Self { class, marker }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_have_distinct_styles() {
        for (index, one) in Mode::ALL.into_iter().enumerate() {
            for other in &Mode::ALL[index + 1..] {
                let (a, b) = (ModeStyle::for_mode(one), ModeStyle::for_mode(*other));
                assert!(a.class != b.class || a.marker != b.marker, "{one} and {other}");
            }
        }
    }
}

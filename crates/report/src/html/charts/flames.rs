//! Flame graphs: stacks from top to bottom, the outermost frame first; the width of a frame is the CPU time in it and below.

use crate::format;
use crate::profile::Profile;
use crate::svg::{Anchor, Drawing, fitted};
use std::collections::BTreeMap;

/// Height of a frame, and the smallest width of one that is drawn and of one that has a name, in units.
const ROW: f64 = 15.0;
const MIN_WIDTH: f64 = 0.4;
const MIN_NAMED_WIDTH: f64 = 28.0;
/// Frames below this depth are part of the last one.
const MAX_DEPTH: usize = 60;
/// Changes of the whole base's time from which a frame has each shade.
const SHADES: [f64; 3] = [0.001, 0.005, 0.02];

/// Which frames are drawn, and how wide.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    /// All of the head.
    Head,
    /// Those of the base that the head does not have.
    Vanished,
}

#[derive(Debug, Default)]
struct Frame<'a> {
    cores: [f64; 2],
    below: BTreeMap<&'a str, Self>,
}

impl<'a> Frame<'a> {
    fn add<'b: 'a>(&mut self, stack: &'b str, cores: [f64; 2]) {
        self.count(cores);
        let mut frame = self;
        for name in stack.split(';').take(MAX_DEPTH) {
            frame = frame.below.entry(name).or_default();
            frame.count(cores);
        }
    }

    fn count(&mut self, cores: [f64; 2]) {
        self.cores = [self.cores[0] + cores[0], self.cores[1] + cores[1]];
    }

    /// Number of rows in which a frame is wide enough to be drawn.
    fn depth(&self, side: usize, least: f64) -> usize {
        let drawn = self.below.values().filter(|frame| frame.cores[side] >= least);
        drawn.map(|frame| 1 + frame.depth(side, least)).max().unwrap_or(0)
    }
}

/// The chart of a component; `None` if no such frame has any time.
pub fn chart(id: &str, title: &str, profile: &Profile, side: Side, width: f64) -> Option<String> {
    let of_base = side == Side::Vanished;
    let mut root = Frame::default();
    for (stack, cores) in &profile.stacks {
        if !of_base || cores[1] == 0.0 {
            root.add(stack, *cores);
        }
    }
    let shown = usize::from(!of_base);
    let all = root.cores[shown];
    if all <= 0.0 {
        return None;
    }
    let scale = width / all;
    let depth = root.depth(shown, MIN_WIDTH / scale);
    let mut drawing = Drawing::new(width, depth as f64 * ROW);
    let painter = Painter { shown, scale, base: profile.cores()[0], is_compared: profile.is_compared };
    painter.below(&mut drawing, &root, 0.0, 0.0);
    Some(drawing.finish(id, title, &format!("{} in all.", format::cores(all))))
}

struct Painter {
    /// Side whose time is the width.
    shown: usize,
    scale: f64,
    /// Cores of the whole base.
    base: f64,
    is_compared: bool,
}

impl Painter {
    /// Draws the frames below one, from this corner.
    fn below(&self, drawing: &mut Drawing, frame: &Frame<'_>, mut x: f64, y: f64) {
        for (name, frame) in &frame.below {
            let width = frame.cores[self.shown] * self.scale;
            if width >= MIN_WIDTH {
                let class = format!("frame {}", self.shade(frame.cores));
                drawing.rectangle_with_tip((x, y), width, ROW, &class, &self.tip(name, frame.cores));
                if width >= MIN_NAMED_WIDTH {
                    drawing.text(
                        (x + 2.0, y + ROW - 4.0),
                        Anchor::Start,
                        "of-frame",
                        &fitted(name, width - 4.0),
                    );
                }
                self.below(drawing, frame, x, y + ROW);
            }
            x += width;
        }
    }

    fn shade(&self, [base, head]: [f64; 2]) -> String {
        let change = if self.is_compared && self.base > 0.0 { (head - base) / self.base } else { 0.0 };
        match SHADES.iter().filter(|least| change.abs() >= **least).count() {
            0 => String::new(),
            shade if change > 0.0 => format!("more-{shade}"),
            shade => format!("less-{shade}"),
        }
    }

    fn tip(&self, name: &str, [base, head]: [f64; 2]) -> String {
        match self.is_compared {
            true => format!("{name}: base {}, head {}", format::cores(base), format::cores(head)),
            false => format!("{name}: {}", format::cores(head)),
        }
    }
}

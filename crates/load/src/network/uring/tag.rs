//! Identifies an operation: kept by the kernel with the operation and returned with its completion.

/// Kind of an operation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Operation {
    Connect,
    Receive,
    /// Send what the kernel accepts at once.
    SendNow,
    /// Send everything, as soon as the kernel accepts it.
    SendAll,
    /// Cancel another operation. Nothing depends on its outcome, which the completion of the cancelled one
    /// reports.
    Cancel,
    /// Watch the timer, repeatedly.
    WakeTimer,
}

/// An operation, its slot, and which of the slot's connections it belongs to. The latter identifies leftovers
/// of an earlier connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Tag {
    pub(super) operation: Operation,
    pub(super) slot: u32,
    /// 29 bits: see [`Tag::next_generation`].
    pub(super) generation: u32,
}

const GENERATION_BITS: u32 = 29;
const OPERATION_SHIFT: u32 = 32 + GENERATION_BITS;

impl Tag {
    /// Returns the generation after this one.
    pub(super) fn next_generation(generation: u32) -> u32 {
        (generation + 1) % (1 << GENERATION_BITS)
    }

    /// Encodes as the 64 bits of `user_data` that the kernel keeps.
    pub(super) fn to_bits(self) -> u64 {
        let operation = match self.operation {
            Operation::Connect => 0_u64,
            Operation::Receive => 1,
            Operation::SendNow => 2,
            Operation::SendAll => 3,
            Operation::Cancel => 4,
            Operation::WakeTimer => 5,
        };
        operation << OPERATION_SHIFT | u64::from(self.generation) << 32 | u64::from(self.slot)
    }

    pub(super) fn from_bits(bits: u64) -> Self {
        let operation = match bits >> OPERATION_SHIFT {
            0 => Operation::Connect,
            1 => Operation::Receive,
            2 => Operation::SendNow,
            3 => Operation::SendAll,
            4 => Operation::Cancel,
            _ => Operation::WakeTimer,
        };
        Self { operation, slot: bits as u32, generation: (bits >> 32) as u32 % (1 << GENERATION_BITS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_round_trips_through_bits() {
        use Operation::{Cancel, Connect, Receive, SendAll, SendNow, WakeTimer};
        for operation in [Connect, Receive, SendNow, SendAll, Cancel, WakeTimer] {
            let last = (1 << GENERATION_BITS) - 1;
            for (slot, generation) in [(0, 0), (u32::MAX, last), (7, 70_000)] {
                let tag = Tag { operation, slot, generation };
                assert_eq!(Tag::from_bits(tag.to_bits()), tag);
            }
            assert_eq!(Tag::next_generation(last), 0);
        }
    }
}

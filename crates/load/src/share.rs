//! The part of a load that one generator of several offers.
//!
//! The threads of all generators are numbered like those of a single process. Each takes the part of the
//! schedule, the clients and the connections that a thread of that process would take. Numbers interleave the
//! generators: generator `i` of `n` takes slots `i`, `i + n`, … of a uniform schedule, whatever its number of
//! threads. Remainders go to the first generators.

/// One of several generators that offer a load together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GeneratorShare {
    index: usize,
    of: usize,
}

impl Default for GeneratorShare {
    /// The only generator.
    fn default() -> Self {
        Self { index: 0, of: 1 }
    }
}

impl GeneratorShare {
    /// Generator `index`, from 0, of `of`; `None` if there is no such generator.
    #[must_use]
    pub fn new(index: usize, of: usize) -> Option<Self> {
        (index < of).then_some(Self { index, of })
    }

    /// Number of generators.
    #[must_use]
    pub fn of(self) -> usize {
        self.of
    }

    /// The part of `total` that this generator takes.
    #[must_use]
    pub fn part(self, total: usize) -> usize {
        part(total, self.index, self.of)
    }

    pub(crate) fn part_of_requests(self, total: u64) -> u64 {
        let (index, of) = (self.index as u64, self.of as u64);
        total / of + u64::from(index < total % of)
    }

    /// Number of a thread among the threads of all generators, and the total if all generators have as many.
    pub(crate) fn worker(self, thread: usize, threads: usize) -> (usize, usize) {
        (thread * self.of + self.index, threads * self.of)
    }
}

/// The part of `total` for index `index` of `parts`.
pub(crate) fn part(total: usize, index: usize, parts: usize) -> usize {
    total / parts + usize::from(index < total % parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_and_first_generators_take_remainder() {
        let parts = |total: usize, of: usize| -> Vec<usize> {
            (0..of).map(|index| GeneratorShare::new(index, of).unwrap().part(total)).collect()
        };
        assert_eq!(parts(10, 4), [3, 3, 2, 2]);
        assert_eq!(parts(2000, 18).iter().sum::<usize>(), 2000);
        assert_eq!(GeneratorShare::new(3, 3), None);
        assert_eq!(GeneratorShare::default().part(7), 7);
    }

    #[test]
    fn generator_slots_do_not_depend_on_its_thread_count() {
        let share = GeneratorShare::new(2, 5).unwrap();
        for threads in 1..4 {
            for thread in 0..threads {
                let (worker, workers) = share.worker(thread, threads);
                assert_eq!((worker % 5, workers % 5), (2, 0));
            }
        }
    }
}

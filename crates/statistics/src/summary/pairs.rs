//! Cells of different modes under the same conditions.
//!
//! A cell lacks the factors that cannot touch its mode, and is measured once for all their values. Two cells are under the same
//! conditions if the factors that both have are equal: one cell of `none` is compared with that of every access log.

use results::{BACKGROUND_SERVICES, Factors, LoadPoint, Mode, OwnedCellKey};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Part of a cell's conditions.
type Shared = (Factors, LoadPoint);

/// Keys of factors.
type Keys<'a> = BTreeSet<&'a str>;

fn keys(cell: &OwnedCellKey) -> impl Iterator<Item = &str> {
    cell.factors.keys().map(String::as_str)
}

/// The part of a cell's conditions that consists of the load and of the factors with these keys.
fn shared(cell: &OwnedCellKey, keys: &Keys<'_>) -> Shared {
    let factors = cell.factors.iter().filter(|(key, _)| keys.contains(key.as_str()));
    let services = cell.load.surrounding_services.filter(|_| keys.contains(BACKGROUND_SERVICES));
    (
        factors.map(|(key, value)| (key.clone(), value.clone())).collect(),
        LoadPoint { surrounding_services: services, ..cell.load.clone() },
    )
}

/// Every cell with those of the modes before its own that lead to the same server, under the same conditions.
pub(super) fn of_modes<'a>(
    cells: &'a [OwnedCellKey],
    modes: &[Mode],
) -> Vec<(&'a OwnedCellKey, &'a OwnedCellKey)> {
    let mut keys_of: BTreeMap<Mode, Keys<'a>> = BTreeMap::new();
    for cell in cells {
        keys_of.entry(cell.mode).or_default().extend(keys(cell));
    }
    let mut partners: HashMap<(Mode, Mode), Partners<'a>> = HashMap::new();
    for (index, mode) in modes.iter().enumerate() {
        for than in modes[..index].iter().filter(|than| mode.compares_with(**than)) {
            let keys = keys_of[mode].intersection(&keys_of[than]).copied().collect();
            partners.insert((*mode, *than), Partners::new(cells, *than, keys));
        }
    }
    let of_cell = |cell: &'a OwnedCellKey| {
        let earlier = modes.iter().filter_map(|than| partners.get(&(cell.mode, *than)));
        earlier.flat_map(|partners| partners.of(cell)).map(|other| (cell, other)).collect::<Vec<_>>()
    };
    cells.iter().flat_map(of_cell).collect()
}

/// Cells of a mode by what they share with those of another one.
struct Partners<'a> {
    keys: Keys<'a>,
    cells: HashMap<Shared, Vec<&'a OwnedCellKey>>,
}

impl<'a> Partners<'a> {
    fn new(cells: &'a [OwnedCellKey], mode: Mode, keys: Keys<'a>) -> Self {
        let mut own: HashMap<Shared, Vec<&OwnedCellKey>> = HashMap::new();
        for cell in cells.iter().filter(|cell| cell.mode == mode) {
            own.entry(shared(cell, &keys)).or_default().push(cell);
        }
        Self { keys, cells: own }
    }

    fn of(&self, cell: &OwnedCellKey) -> Vec<&'a OwnedCellKey> {
        self.cells.get(&shared(cell, &self.keys)).cloned().unwrap_or_default()
    }
}

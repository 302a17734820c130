//! Sizes: memory and traffic in decimal units, bodies in the units of experiments.

use super::number::{count, tick, with_unit};

/// Unit of the sizes in one table or chart. Decimal, as most published memory figures are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SizeUnit {
    /// B.
    Bytes,
    /// kB, 1000 bytes.
    Kilobytes,
    /// MB.
    Megabytes,
    /// GB.
    Gigabytes,
}

impl SizeUnit {
    /// The unit that suits these sizes (in bytes) together: that of the largest, or MB if there are none.
    pub fn for_sizes(sizes_bytes: impl IntoIterator<Item = f64>) -> Self {
        let greatest =
            sizes_bytes.into_iter().filter(|size| size.is_finite()).map(f64::abs).fold(0.0, f64::max);
        if greatest > 0.0 && greatest < 1e3 {
            Self::Bytes
        } else if greatest > 0.0 && greatest < 1e6 {
            Self::Kilobytes
        } else if greatest < 1e9 {
            Self::Megabytes
        } else {
            Self::Gigabytes
        }
    }

    /// Bytes per unit.
    #[must_use]
    pub fn bytes(self) -> f64 {
        match self {
            Self::Bytes => 1.0,
            Self::Kilobytes => 1e3,
            Self::Megabytes => 1e6,
            Self::Gigabytes => 1e9,
        }
    }

    /// `B`, `kB`, `MB` or `GB`.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Bytes => "B",
            Self::Kilobytes => "kB",
            Self::Megabytes => "MB",
            Self::Gigabytes => "GB",
        }
    }
}

/// A size in a suitable unit: `38.2 MB`.
#[must_use]
pub fn size(bytes: f64) -> String {
    let unit = SizeUnit::for_sizes([bytes]);
    with_unit(&tick(bytes / unit.bytes()), unit.symbol())
}

/// The size of a body as experiments write it: `1 KiB` if it is a multiple of 1024 bytes.
#[must_use]
pub fn payload(bytes: u64) -> String {
    const KIBIBYTE: u64 = 1024;
    const MEBIBYTE: u64 = 1024 * KIBIBYTE;
    match bytes {
        0 => with_unit("0", "B"),
        bytes if bytes % MEBIBYTE == 0 => with_unit(&count(bytes / MEBIBYTE), "MiB"),
        bytes if bytes % KIBIBYTE == 0 => with_unit(&count(bytes / KIBIBYTE), "KiB"),
        bytes => size(bytes as f64),
    }
}

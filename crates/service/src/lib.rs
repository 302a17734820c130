//! The synthetic service.

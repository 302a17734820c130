//! Reading the result files and the messages between processes from JSON. One compiled reader per type: each crate that calls
//! serde_json with these types would compile all that they contain once more.

use crate::{
    Calibration, ComponentsSecond, FleetAnswer, FleetProgress, FleetResult, GeneratorSecond, HistoryRun,
    Host, LoadEvent, LoadResult, TrialRecord, TrialUnderWay,
};

macro_rules! read_from_json {
    ($($type:ty),+) => {
        $(impl $type {
            /// Reads it from JSON.
            ///
            /// # Errors
            /// Returns an error if the text is not JSON of this type.
            pub fn from_json(text: impl AsRef<[u8]>) -> serde_json::Result<Self> {
                fn read(text: &[u8]) -> serde_json::Result<$type> {
                    serde_json::from_slice(text)
                }
                read(text.as_ref())
            }
        })+
    };
}

read_from_json!(
    Calibration,
    ComponentsSecond,
    FleetAnswer,
    FleetProgress,
    FleetResult,
    GeneratorSecond,
    HistoryRun,
    Host,
    LoadEvent,
    LoadResult,
    TrialRecord,
    TrialUnderWay
);

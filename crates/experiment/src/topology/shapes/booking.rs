//! `booking`: an airline's booking app with four services, each with its data in an external database,
//! modelled on Acme Air (STUDIES: `egress`). The mean payload is 620 bytes.
//!
//! A request to `main` checks the session and reads the customer. Most requests then search flights, and some
//! book one. Each service makes several queries, each for one document by its key.

use super::draft::{Draft, call_endpoint, call_sometimes, endpoint, query};
use super::parameter::CLIENT_IN_MESH;
use super::shape::Shape;
use crate::protocol::Protocol;
use crate::topology::script::QueryOperation::{Find, Insert, Update};

/// Mean payload of the study, bytes.
const PAYLOAD_BYTES: u32 = 620;
/// Size of request bodies: a form with a few fields.
const FORM_BYTES: u32 = 120;

pub(super) static BOOKING: Shape = Shape {
    name: "booking",
    summary: "an airline's booking app: main, auth, flight and booking, with a database outside the mesh",
    parameters: &[CLIENT_IN_MESH],
    is_plain: false,
    make: |settings| {
        let mut draft = Draft::new("booking", settings);
        let (main, auth, flight, booking, db) = (0, 1, 2, 3, 4);
        let find = |collection: &str| query(db, Find, collection, 1, PAYLOAD_BYTES);
        draft.service(
            "main",
            Protocol::Http1,
            vec![endpoint(
                "/",
                vec![
                    call_endpoint(auth, "/session", FORM_BYTES),
                    find("customers"),
                    call_sometimes(flight, "/query", FORM_BYTES, 0.8),
                    call_sometimes(booking, "/book", FORM_BYTES, 0.2),
                ],
                PAYLOAD_BYTES,
            )],
        );
        draft.service(
            "auth",
            Protocol::Http1,
            vec![endpoint("/session", vec![find("sessions")], PAYLOAD_BYTES)],
        );
        draft.service(
            "flight",
            Protocol::Http1,
            vec![
                endpoint("/query", vec![find("segments"), find("flights")], PAYLOAD_BYTES),
                endpoint("/reward", vec![find("segments")], PAYLOAD_BYTES),
            ],
        );
        draft.service(
            "booking",
            Protocol::Http1,
            vec![endpoint(
                "/book",
                vec![
                    query(db, Insert, "bookings", 1, PAYLOAD_BYTES),
                    call_endpoint(flight, "/reward", FORM_BYTES),
                    query(db, Update, "customers", 1, PAYLOAD_BYTES),
                ],
                PAYLOAD_BYTES,
            )],
        );
        draft.database("db");
        draft.driver(main, "/");
        Ok(draft.done())
    },
};

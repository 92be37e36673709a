//! The suite of every store, on SQLite.

use std::sync::Arc;

use homing_store::Store;

use crate::home::Home;

async fn fresh() -> (Arc<dyn Store>, Home) {
    let home = Home::new();
    (home.open(), home)
}

homing_store::store_conformance!(fresh);

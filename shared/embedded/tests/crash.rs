//! The crash test of `receive` and `work` on a file: with rows and tasks in one place.

#![expect(clippy::unwrap_used, reason = "what prepares a test fails by panicking, too")]

use std::sync::Arc;

use domain::testing::ManualClock;
use embedded::{Settings, SqliteStore};
use testkit::crash::World;

fn world() -> World<SqliteStore> {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::default());
    let file = folder.path().join("ledger.db");
    let store = SqliteStore::open(&file, clock.clone(), Settings::default()).unwrap();
    World::new(clock, Arc::new(store.clone()), Arc::new(store)).keeping(folder)
}

testkit::crash_tests! { name: sqlite, make: world() }
testkit::crash_tests! { name: sqlite_twice, make: world(), faults: Near }
testkit::scene_tests! { name: sqlite_scenes, make: world() }

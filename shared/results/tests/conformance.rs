//! Results on disk and in memory do what the port promises.

#![expect(clippy::unwrap_used, reason = "what prepares a test fails by panicking, too")]

use std::fs;
use std::sync::Arc;

use results::ObjectResults;
use testkit::conformance::ResultsSubject;

fn on_disk() -> ResultsSubject {
    let home = tempfile::tempdir().unwrap();
    let results = ObjectResults::on_disk(home.path(), "2026-11-30T12:00:00Z".parse().unwrap());
    let root = home.path().to_owned();
    ResultsSubject::new(Arc::new(results.unwrap())).keeping(home).spoiling(move |key| {
        let mut bytes = fs::read(root.join(key)).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(root.join(key), bytes).unwrap();
    })
}

testkit::results_conformance! { name: disk, make: on_disk() }
testkit::results_conformance! {
    name: memory,
    make: ResultsSubject::new(Arc::new(ObjectResults::in_memory())),
}

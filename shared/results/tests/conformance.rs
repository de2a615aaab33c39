//! Results on disk, in memory and on S3 do what the port promises.

#![expect(clippy::unwrap_used, reason = "what prepares a test fails by panicking, too")]

use std::fs;
use std::sync::Arc;

use domain::testing::ManualClock;
use results::ObjectResults;
use results::testing::FakeS3;
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

/// A bucket whose answers list two keys at a time.
async fn in_a_bucket(prefix: &str) -> ResultsSubject {
    let s3 = Arc::new(FakeS3::start().await.unwrap());
    s3.limit_pages(2);
    let mut settings = s3.settings();
    prefix.clone_into(&mut settings.prefix);
    let results = ObjectResults::on_s3(&settings, Arc::new(ManualClock::default())).unwrap();
    let (bucket, start) = (Arc::clone(&s3), prefix.to_owned());
    ResultsSubject::new(Arc::new(results)).keeping(s3).spoiling(move |key| {
        let key = format!("{start}{key}");
        let mut bytes = bucket.object(&key).unwrap().bytes.to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        bucket.put_bytes(&key, bytes);
    })
}

testkit::results_conformance! { name: s3, make: in_a_bucket("").await }
testkit::results_conformance! { name: s3_below_a_prefix, make: in_a_bucket("Data/gleaner/").await }

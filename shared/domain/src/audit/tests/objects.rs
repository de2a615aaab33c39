//! Stored results, held against their rows.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::entry::StoredObject;
use crate::ports::Results;

#[tokio::test]
async fn objects_are_compared_with_their_rows() {
    let rig = Rig::new();
    let gone = rig.stored("job-1", 1).await;
    let changed = rig.stored("job-2", 2).await;
    rig.stored("job-3", 3).await;
    assert!(rig.results.remove(&gone) && rig.results.remove(&changed));
    rig.results.put_new(&changed, b"something else").await.unwrap();
    let stray = extract_key(&key("nobody").job_id, utc_date(at(0)));
    rig.results.put_new(&stray, b"stray").await.unwrap();
    let sheet = rig.audit().await;
    assert_eq!(
        found(&sheet),
        [
            (Discrepancy::ObjectMissing, 1),
            (Discrepancy::ObjectDiffers, 1),
            (Discrepancy::UnownedObject, 1)
        ]
    );
    assert_eq!((sheet.objects.named, sheet.objects.whole), (3, 1));
}

/// A worker that was killed between object and row leaves an object that its row will own.
#[tokio::test]
async fn an_object_whose_row_is_still_owed_is_owned() {
    let rig = Rig::new();
    rig.list("job-1", 1, JobStatus::Completed);
    let row = rig.received("job-1", 1);
    rig.write(row.put_off(after(rig.clock.now(), DAY), row.counters.clone(), &rig.limits)).await;
    let object = extract_key(&key("job-1").job_id, utc_date(at(1)));
    rig.results.put_new(&object, b"result").await.unwrap();
    assert!(rig.audit().await.balances());
}

/// Results that are read slowly; the most that were at once.
struct Slow<'a> {
    results: &'a MemoryResults,
    now: AtomicUsize,
    most: AtomicUsize,
}

#[async_trait::async_trait]
impl Results for Slow<'_> {
    async fn put_new(&self, key: &str, content: &[u8]) -> Result<PutOutcome, PortError> {
        self.results.put_new(key, content).await
    }

    async fn read(&self, key: &str) -> Result<Option<(StoredObject, Vec<u8>)>, PortError> {
        self.most.fetch_max(self.now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        tokio::task::yield_now().await;
        self.now.fetch_sub(1, Ordering::Relaxed);
        self.results.read(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<String>, PortError> {
        self.results.list(prefix, after, limit).await
    }
}

/// No more than a few contents are in memory, and what is found comes in one order.
#[tokio::test]
async fn a_few_results_are_read_at_once() {
    let rig = Rig::new();
    let mut lost = Vec::new();
    for number in 10..31 {
        let name = format!("job-{number}");
        let object = rig.stored(&name, number).await;
        if number % 2 == 0 {
            assert!(rig.results.remove(&object));
            lost.push(Some(key(&name)));
        }
    }
    let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let slow = Slow { results: &rig.results, now, most };
    let sources = Sources { ports: Ports { results: &slow, ..rig.ports() }, ..rig.sources() };
    let period = Period { from: start(), to: after(start(), DAY) };
    let sheet = audit(sources, period).await.unwrap();
    assert_eq!(slow.most.load(Ordering::Relaxed), crate::audit::objects::AT_ONCE);
    assert_eq!(found(&sheet), [(Discrepancy::ObjectMissing, 11)]);
    assert_eq!((sheet.objects.named, sheet.objects.whole), (21, 10));
    let found: Vec<_> = sheet.findings.into_iter().map(|finding| finding.key).collect();
    assert_eq!(found, lost);
}

//! A run whose holder is no more.

use super::parents::{completed, pages_asked, whole};
use super::rig::{MINUTE, Rig, batch, error, items};
use crate::job::JobStatus;
use crate::ports::ApiErrorKind;
use crate::time::after;
use crate::work::{Skip, Worked, release_run};

/// A released run goes on with its next page; one that nobody holds is left alone.
#[tokio::test]
async fn a_released_run_goes_on_at_once() {
    let rig = Rig::new();
    let key = completed(&rig, 120).await;
    rig.jobs.answer_page(&key, 3, Err(error(ApiErrorKind::Unavailable, None)));
    rig.work(&key).await;
    rig.jobs.clear_answers(&key);
    rig.jobs.answer_parent(&key, Ok(whole(&key, JobStatus::Completed, items(0..120))));
    // As a crash leaves it: the run is held, and nobody has put the row off.
    let mut row = rig.entry(&key);
    row.run.as_mut().unwrap().held_until = after(rig.now(), MINUTE);
    row.not_before = None;
    rig.ledger.place(&row);
    assert_eq!(rig.work(&key).await, Worked::Skipped(Skip::Overtaken));

    release_run(rig.ports(), &key).await.unwrap();
    let released = rig.entry(&key);
    assert_eq!(released.run.as_ref().unwrap().holder, row.run.unwrap().holder);
    release_run(rig.ports(), &key).await.unwrap();
    assert_eq!(rig.entry(&key), released, "it was free already");

    let before = pages_asked(&rig).len();
    assert!(matches!(rig.work(&key).await, Worked::Stored { .. }));
    assert_eq!(pages_asked(&rig)[before..], [(3, 50)]);
    release_run(rig.ports(), &key).await.unwrap();
    release_run(rig.ports(), &batch("unknown")).await.unwrap();
}

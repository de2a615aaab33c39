//! What a job costs in calls.

use std::sync::Arc;

use domain::entry::{Cause, Entry, Link};
use domain::job::{JobId, JobKey, JobStatus, Kind};
use domain::limits::Limits;
use domain::ports::{Clock as _, Expected, Ledger};
use domain::testing::{MemoryQueue, extract_answer};
use testkit::crash::World;

use crate::table::Table;
use crate::wire::{Fate, Wire};

struct Counted {
    wire: Wire,
    ledger: Arc<dyn Ledger>,
    world: World<MemoryQueue>,
}

impl Counted {
    async fn new() -> Self {
        let table = Table::new().await;
        let wire = Wire::always(Fate::Pass).await;
        let ledger: Arc<dyn Ledger> = Arc::new(table.ledger_by(&wire.endpoint));
        let queue = Arc::new(MemoryQueue::new(table.clock.clone()));
        let world = World::new(table.clock.clone(), ledger.clone(), queue);
        Self { wire, ledger, world }
    }

    /// The calls of a delivery and of its task, for a completed job.
    async fn job(&self, id: &str, is_known: bool) -> (Vec<String>, Vec<String>) {
        let job = JobKey::new(Kind::Extract, JobId::parse(id).unwrap());
        let now = self.world.clock.now();
        if is_known {
            let limits = Limits::default();
            let link = Link {
                submission: "s-1".to_owned(),
                lineage: job.job_id.clone(),
                attempt: 0,
                base: 0,
                request: None,
                reference: None,
            };
            let row = Entry::expected(job.clone(), Some(link), Cause::Submit, now, &limits);
            self.ledger.write(&row, Expected::Absent(now)).await.unwrap();
        }
        let answer = extract_answer(&job.job_id, JobStatus::Completed);
        self.world.jobs.answer_extract(&job.job_id, Ok(answer));
        self.wire.take();
        assert_eq!(self.world.deliver_well(&job, &*self.ledger).await, 202);
        let received = self.wire.operations();
        self.world.work_well(&job, &*self.ledger).await.unwrap();
        let worked = self.wire.operations();
        let row = self.ledger.load(&job).await.unwrap().unwrap();
        assert_eq!(row.state.name().as_str(), "stored");
        (received, worked)
    }
}

/// Of a job that nobody knew: its row is laid down unread, once a delivery has shown that the ledger
/// knows none, and the worker asks for posts that may have made it.
#[test]
fn an_unknown_job_costs_three_writes_and_two_reads_and_the_first_of_a_process_a_read_more() {
    testkit::run(async {
        let counted = Counted::new().await;
        // The first look of a process reads the pause.
        let (received, worked) = counted.job("first", false).await;
        assert_eq!(received, ["GetItem", "PutItem"]);
        let reads = ["GetItem", "GetItem", "Query"];
        assert_eq!(worked, [&reads[..], &["PutItem", "PutItem"]].concat());
        for id in ["second", "third"] {
            let (received, worked) = counted.job(id, false).await;
            assert_eq!(received, ["PutItem"]);
            assert_eq!(worked, ["GetItem", "Query", "PutItem", "PutItem"]);
        }
    });
}

/// Of a job that was submitted from here: its row is read first, by a new process as well.
#[test]
fn a_known_job_costs_three_writes_and_two_reads_and_a_change_of_habit_one_call_more() {
    testkit::run(async {
        let counted = Counted::new().await;
        let (received, worked) = counted.job("first", true).await;
        assert_eq!(received, ["GetItem", "PutItem"]);
        // The first look of a process reads the pause.
        assert_eq!(worked, ["GetItem", "GetItem", "PutItem", "PutItem"]);
        for id in ["second", "third"] {
            let (received, worked) = counted.job(id, true).await;
            assert_eq!(received, ["GetItem", "PutItem"]);
            assert_eq!(worked, ["GetItem", "PutItem", "PutItem"]);
        }
        let (received, _) = counted.job("stranger", false).await;
        assert_eq!(received, ["GetItem", "PutItem"]);
        let (received, _) = counted.job("another-stranger", false).await;
        assert_eq!(received, ["PutItem"]);
        let (received, _) = counted.job("known-again", true).await;
        assert_eq!(received, ["PutItem", "PutItem"], "the refusal told what is there");
    });
}

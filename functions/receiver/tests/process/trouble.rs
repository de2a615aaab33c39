//! The table and the queue in trouble, and slow.

use std::pin::pin;
use std::time::Duration;

use queue_sqs::testing::SqsTrouble;

use super::site::{Process, Site, delivery};
use super::table::TableTrouble;

/// Longer than the function's patience with one service.
const DEADLINE: &str = "2500ms";

/// A function with this deadline of its own that has answered once: its connections are open, and
/// what is planned next meets a delivery.
async fn begin(deadline: &str) -> (Site, Process) {
    let mut site = Site::new().await;
    site.variables.insert("GLEANER_LIMITS_RECEIVE_DEADLINE".to_owned(), deadline.to_owned());
    let process = site.start();
    assert_eq!(site.status(&delivery("first")).await, 202);
    (site, process)
}

/// Requests of the queue so far.
fn sends(site: &Site) -> usize {
    site.queue.seen().iter().filter(|call| *call == "SendMessage").count()
}

/// DQ-01: the task is refused once: the delivery is 503, the second sends it, the third is a
/// repetition; one message in all.
#[test]
fn a_task_that_was_refused_is_sent_by_the_next_delivery() {
    testkit::run(async {
        let (site, _process) = begin(DEADLINE).await;
        site.queue.plan([SqsTrouble::Refuse { status: 403, code: "AccessDenied" }]);
        let mut told = Vec::new();
        for _ in 0..3 {
            let status = site.status(&delivery("job")).await;
            told.push((status, site.sent().len() - 1));
        }
        assert_eq!(told, [(503, 0), (202, 1), (202, 1)]);
        assert_eq!((sends(&site), site.table.keys().len()), (3, 2));
    });
}

/// DQ-04: whatever the table or the queue answers, the delivery is 503, and its repetition is
/// accepted once that is over.
#[test]
fn trouble_of_the_table_or_the_queue_is_503() {
    testkit::run(async {
        let (site, mut process) = begin(DEADLINE).await;
        for (status, code) in [
            (400, "ThrottlingException"),
            (400, "ResourceNotFoundException"),
            (400, "AccessDeniedException"),
            (500, "InternalServerError"),
        ] {
            let job = delivery(code);
            site.table.always(Some(TableTrouble::Refuse(status, code)));
            assert_eq!(site.status(&job).await, 503, "{code}");
            site.table.always(None);
            assert_eq!(site.status(&job).await, 202, "{code}");
        }
        // The last is how often the function asks before it gives up.
        for (status, code, asked) in [
            (400, "RequestThrottled", 3),
            (400, "QueueDoesNotExist", 1),
            (403, "AccessDenied", 1),
            (500, "InternalFailure", 3),
        ] {
            let (job, before) = (delivery(code), site.sent().len());
            site.queue.plan(vec![SqsTrouble::Refuse { status, code }; asked]);
            assert_eq!(site.status(&job).await, 503, "{code}");
            assert_eq!((site.status(&job).await, site.sent().len()), (202, before + 1), "{code}");
        }
        assert!(process.is_alive());
    });
}

/// DQ-04: a table or a queue that never answers is given up at the function's own deadline.
#[test]
fn a_service_that_hangs_is_503_in_time() {
    testkit::run(async {
        let (site, mut process) = begin("400ms").await;
        let job = delivery("job");
        site.table.always(Some(TableTrouble::Hang));
        assert_eq!(site.status(&job).await, 503);
        site.table.always(None);
        site.queue.plan([SqsTrouble::Hang]);
        assert_eq!(site.status(&job).await, 503);
        assert!(process.is_alive());
        assert_eq!((site.sent(), site.table.keys().len()), (vec!["first".into()], 2));
    });
}

/// WK-19: the answer leaves when the message is there, however long the queue takes; nothing is
/// left to be done behind it.
#[test]
fn the_answer_waits_for_the_queue() {
    testkit::run(async {
        let (site, _process) = begin(DEADLINE).await;
        let before = sends(&site);
        site.queue.plan([SqsTrouble::Wait]);
        let job = delivery("job");
        let mut answer = pin!(site.status(&job));
        let slow = async {
            while sends(&site) == before {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            status = &mut answer => panic!("{status} before the queue was asked"),
            () = slow => {}
        }
        let not_yet = tokio::time::timeout(Duration::from_millis(300), &mut answer).await;
        assert!(not_yet.is_err(), "{not_yet:?}");
        assert_eq!(site.sent(), ["first"]);
        site.queue.go_on();
        assert_eq!(answer.await, 202);
        assert_eq!(site.sent(), ["first", "job"]);
    });
}

//! The ledger or the queue in trouble.

use std::time::{Duration, Instant};

use testkit::faulty::Fault;

use super::http::{NAME, Request, V1};
use super::site::{Plan, Site};

/// The receiver's own deadline in this test.
const DEADLINE: Duration = Duration::from_millis(300);
/// Below the platform's time-out of 10 s, whatever the machine does meanwhile.
const FAST: Duration = Duration::from_secs(5);

/// SQ-02, S29: while another process holds the ledger's write lock a delivery waits and is then put
/// off, never acknowledged; others are answered meanwhile, by one thread; and when the lock is gone
/// the repeated delivery is accepted.
#[tokio::test]
async fn sq_02_a_foreign_lock_puts_deliveries_off_and_keeps_nobody_waiting() {
    let site = Site::new().await;
    let other = rusqlite::Connection::open(site.store.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (addr, before) = (site.addr, site.faults.calls().len());
    let waiting = tokio::spawn(async move { Request::v1().send(addr).await });
    while site.faults.calls().len() == before {
        tokio::task::yield_now().await;
    }
    let forged = Request::unsigned(V1).header(NAME, "00".repeat(32));
    let health = Request::unsigned(b"").by("GET").at("/healthz");
    assert_eq!(tokio::join!(forged.send(addr), health.send(addr)), (401, 200));
    assert!(!waiting.is_finished(), "it waits for the lock");
    assert_eq!(waiting.await.unwrap(), 503);
    assert!(site.row("j1").await.is_none());
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(Request::v1().send(addr).await, 202);
    assert!(site.row("j1").await.is_some());
    site.stop().await;
}

/// DQ-04: whichever call of the ledger or the queue fails, loses its answer or hangs, the answer is
/// 503 and fast; the repeated delivery is accepted, and leaves one row that is owed.
#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "the test measures how long an answer takes")]
async fn dq_04_trouble_is_503_and_the_repetition_is_accepted() {
    let (first, last) = {
        let site = Site::new().await;
        let before = site.faults.calls().len();
        assert_eq!(Request::v1().send(site.addr).await, 202);
        let after = site.faults.calls().len();
        site.stop().await;
        (before, after)
    };
    assert!(last >= first + 2, "a row and a task at least");
    let mut refused = 0;
    for number in first..last {
        for fault in Fault::ALL {
            let fault_at = Some((number, fault));
            let plan = Plan { deadline: DEADLINE, fault: fault_at, ..Plan::default() };
            let site = Site::with(plan).await;
            let began = Instant::now();
            let status = Request::v1().send(site.addr).await;
            assert!(began.elapsed() < FAST, "call {number}, {fault:?}");
            // A call whose outcome the answer does not rest on may fail unnoticed.
            assert!(status == 503 || status == 202, "call {number}, {fault:?}: {status}");
            refused += usize::from(status == 503);
            assert!(status == 503 || site.row("j1").await.is_some(), "202 is durable");
            site.faults.heal();
            assert_eq!(Request::v1().send(site.addr).await, 202, "call {number}, {fault:?}");
            // Where the task is not known to be sent, the sweep has a time at which it sends one.
            let row = site.row("j1").await.expect("one row");
            assert!(row.due_at.is_some() && site.rows().await == 1, "call {number}, {fault:?}");
            site.stop().await;
        }
    }
    assert!(refused >= 6, "the first write and the send are owed: {refused}");
}

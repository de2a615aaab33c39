//! Lists whose pages move, lie or repeat themselves.

use std::collections::BTreeSet;

use super::lists::{cut, page, within};
use super::*;
use crate::ports::ListPage;

/// The ids of all rows.
fn known(rig: &Rig) -> BTreeSet<String> {
    rig.ledger.entries().iter().map(|entry| entry.key.job_id.to_string()).collect()
}

/// SC-05, S26: four jobs, pages of two, the first one leaves before the second page is read; then
/// one arrives. The next run finds what slipped through, and repeats do no harm.
#[tokio::test]
async fn a_job_that_slips_between_two_pages_is_found_by_the_next_run() {
    let rig = Rig::new();
    let ages = [4, 3, 2, 1].map(|hours| HOUR * hours).into_iter().enumerate();
    let job = |(number, age)| listed(&rig, &format!("j{number}"), "completed", age);
    let jobs: Vec<_> = ages.map(job).collect();
    let arrived = listed(&rig, "arrived", "completed", 3 * HOUR);
    let lists = Lists::new(&rig, move |before, query| {
        let mut jobs = jobs.clone();
        if before >= 1 {
            jobs.remove(0);
        }
        if before >= 2 {
            jobs.insert(0, arrived.clone());
        }
        Ok(cut(&jobs, query, 2))
    });
    run(lists.ports()).await;
    assert!(!known(&rig).contains("j2"), "it was on the page that had been read");
    run(lists.ports()).await;
    let all = ["arrived", "j0", "j1", "j2", "j3"].map(str::to_owned);
    assert_eq!(known(&rig), BTreeSet::from(all));
    assert_eq!(rig.queue.depth(), 5);
    // Nobody passes what was read once only: the watermark waits for a walk without news.
    assert_eq!(saved(&rig).watermark, None);
    run(lists.ports()).await;
    assert!(saved(&rig).watermark.is_some());
}

/// SC-05: pages that start some entries too late at random, as long as it takes.
#[tokio::test]
async fn pages_that_skip_entries_at_random_are_made_up_for() {
    for seed in 0..20_u64 {
        let rig = Rig::new();
        let jobs = many(&rig, "j", 450, HOUR);
        let mut dice = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let lists = Lists::new(&rig, move |_, query| {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            let listed = within(&jobs, query);
            let shift = if dice.is_multiple_of(3) { usize::try_from(dice % 5).unwrap() } else { 0 };
            let begin = usize::try_from(query.page - 1).unwrap() * 100 + shift;
            Ok(page(listed.into_iter().rev().skip(begin).take(100)))
        });
        for _ in 0..6 {
            run(lists.ports()).await;
        }
        assert_eq!(known(&rig).len(), 450, "seed {seed}");
    }
}

/// SC-06: whatever the list says of its pages, it is read to its end, and no further.
#[tokio::test]
async fn what_a_list_says_of_its_pages_is_not_believed() {
    for (page_count, is_capped) in
        [(Some(0), false), (None, false), (Some(2), true), (Some(7), false)]
    {
        let rig = Rig::new();
        let jobs = many(&rig, "j", 250, HOUR);
        let lists = Lists::new(&rig, |_, query| {
            Ok(ListPage { page_count, is_capped, ..cut(&jobs, query, 100) })
        });
        let report = run(lists.ports()).await;
        assert_eq!((report.announced, report.partial), (250, false), "{page_count:?}");
        assert_eq!(report.capped > 0, is_capped);
        let calls = lists.take_pages();
        // A capped list is halved until its pages are short; each half ends with an empty page.
        assert!(if is_capped { calls.len() < 60 } else { calls == [1, 2, 3, 4] }, "{calls:?}");
    }
}

/// SC-06: page 3 of 9 is empty, and the list ends there.
#[tokio::test]
async fn an_empty_page_ends_a_list_of_nine() {
    let rig = Rig::new();
    let jobs = many(&rig, "j", 200, HOUR);
    let lists =
        Lists::new(&rig, |_, query| Ok(ListPage { page_count: Some(9), ..cut(&jobs, query, 100) }));
    assert_eq!(run(lists.ports()).await.announced, 200);
    assert_eq!(lists.take_pages(), [1, 2, 3]);
}

/// SC-06: an endpoint that ignores the page number shows all its jobs by their dates.
#[tokio::test]
async fn an_endpoint_that_repeats_page_1_shows_all_by_their_dates() {
    let rig = Rig::new();
    let jobs = many(&rig, "j", 450, HOUR);
    let lists =
        Lists::new(&rig, |_, query| Ok(page(within(&jobs, query).into_iter().rev().take(100))));
    let report = run(lists.ports()).await;
    assert_eq!((report.announced, report.partial), (450, false));
    assert!(lists.queries().len() < 100, "{}", lists.queries().len());
}

/// SC-06: one that ignores page number and dates ends too, and says what it could not make sure.
#[tokio::test]
async fn an_endpoint_that_ignores_everything_ends_all_the_same() {
    let rig = Rig::new();
    let jobs = many(&rig, "j", 100, HOUR);
    let lists = Lists::new(&rig, |_, _| {
        Ok(ListPage { is_capped: true, page_count: Some(2), ..page(jobs.clone()) })
    });
    let mut unsure = 0;
    for _ in 0..10 {
        unsure += run(lists.ports()).await.unsure;
        rig.clock.advance(HOUR);
    }
    assert_eq!(known(&rig).len(), 100);
    // Strays show that the dates are ignored; until the watermark has passed them there are none.
    assert!(lists.queries().len() < 2_000, "{}", lists.queries().len());
    assert!(unsure > 0);
}

/// A hundred and more jobs of one instant are read page by page: no window is shorter.
#[tokio::test]
async fn jobs_of_one_instant_are_read_page_by_page() {
    let rig = Rig::new();
    let at = before(rig.now(), MINUTE);
    let mut jobs = many(&rig, "j", 350, MINUTE);
    for listed in &mut jobs {
        listed.created_at = Some(at);
    }
    let lists = Lists::new(&rig, |_, query| {
        Ok(ListPage { is_capped: query.page == 1, ..cut(&jobs, query, 100) })
    });
    assert_eq!(run(lists.ports()).await.announced, 350);
    assert_eq!(rig.queue.depth(), 350);
}

/// Order is not relied upon: newest first, oldest first or none at all, each job is found once.
#[tokio::test]
async fn the_order_of_a_list_does_not_matter() {
    for order in 0..3 {
        let rig = Rig::new();
        let mut jobs = many(&rig, "j", 250, HOUR);
        match order {
            0 => {}
            1 => jobs.reverse(),
            // By the last digit: as good as none.
            _ => jobs.sort_by_key(|listed| listed.job_id.as_str().bytes().last()),
        }
        let lists = Lists::new(&rig, |_, query| Ok(cut(&jobs, query, 100)));
        assert_eq!(run(lists.ports()).await.announced, 250, "order {order}");
        let newest = before(rig.now(), 3_351 * SECOND);
        assert_eq!(saved(&rig).candidate.unwrap().at, before(newest, rules().overlap));
        assert_eq!(run(lists.ports()).await.announced, 0);
        assert_eq!(saved(&rig).watermark, Some(before(newest, rules().overlap)));
    }
}

/// A list that lags behind its jobs by less than the overlap hides none of them.
#[tokio::test]
async fn a_list_that_lags_hides_nothing() {
    let rig = Rig::new();
    rig.jobs.set_list_lag(14 * MINUTE);
    for number in 0..60_u32 {
        let name = format!("j{number}");
        rig.jobs.list_job(Kind::Extract, listed(&rig, &name, "completed", Duration::ZERO));
        rig.clock.advance(MINUTE);
        run(rig.ports()).await;
    }
    rig.clock.advance(15 * MINUTE);
    run(rig.ports()).await;
    assert_eq!(known(&rig).len(), 60);
}

/// The platform's clock may be hours behind ours or ahead of it: the watermark is its own.
#[tokio::test]
async fn a_clock_that_is_wrong_hides_nothing() {
    for (ahead, behind) in [(3 * HOUR, Duration::ZERO), (Duration::ZERO, 3 * HOUR)] {
        let rig = Rig::new();
        let mut jobs = Vec::new();
        for number in 0..30_u32 {
            let mut job = listed(&rig, &format!("j{number}"), "completed", behind);
            job.created_at = job.created_at.map(|at| crate::time::after(at, ahead));
            jobs.push(job);
            let lists = Lists::new(&rig, |_, query| Ok(cut(&jobs, query, 100)));
            run(lists.ports()).await;
            rig.clock.advance(10 * MINUTE);
        }
        rig.clock.advance(ahead);
        let lists = Lists::new(&rig, |_, query| Ok(cut(&jobs, query, 100)));
        run(lists.ports()).await;
        assert_eq!(known(&rig).len(), 30);
    }
}

/// SC-11, scale: what is new decides the cost, not what is known. The rest of the list is not read.
#[tokio::test]
async fn the_cost_is_in_proportion_to_what_is_new() {
    let rig = Rig::new();
    let jobs = many(&rig, "old", 5_000, 50 * HOUR);
    let lists = Lists::new(&rig, |_, query| Ok(cut(&jobs, query, 100)));
    for _ in 0..2 {
        run(lists.ports()).await;
    }
    lists.take_pages();
    let mut jobs = jobs.clone();
    jobs.extend(many(&rig, "new", 1_000, 1_000 * SECOND));
    let lists = Lists::new(&rig, |_, query| Ok(cut(&jobs, query, 100)));
    assert_eq!(run(lists.ports()).await.announced, 1_000);
    let after = within(&jobs, &lists.queries()[0]).len();
    let calls = lists.queries().len();
    assert!(calls <= after.div_ceil(100) + 1 && after < 2_000, "{calls} calls, {after} jobs");
}

/// A window of the past that takes many pages is read in halves, and what was read counts at once.
#[tokio::test]
async fn a_long_history_is_read_in_parts() {
    let rig = Rig::new();
    let jobs = many(&rig, "j", 12_000, 40 * HOUR);
    let lists = Lists::new(&rig, |_, query| {
        let count = within(&jobs, query).len().div_ceil(100);
        Ok(ListPage { page_count: u64::try_from(count).ok(), ..cut(&jobs, query, 100) })
    });
    let report = run(lists.ports()).await;
    assert_eq!((report.announced, report.partial), (12_000, false));
    // Each part but the last is walked twice, since its pages may have moved.
    let calls = lists.queries().len();
    assert!((121..300).contains(&calls), "{calls}");
    assert!(saved(&rig).watermark.is_some());
}

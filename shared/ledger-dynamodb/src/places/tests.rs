use domain::entry::{Cause, DeadReason, Link, State};
use domain::intent::Submission;
use domain::job::JobId;
use domain::limits::Limits;
use domain::post::Post;
use domain::request::{FetchOptions, JobRequest};
use proptest::prelude::*;

use super::*;
use crate::limits::SORT_KEY_BYTES_MAX;

fn entry(kind: Kind, id: &str, due_at: Timestamp) -> Entry {
    let key = JobKey::new(kind, JobId::parse(id).unwrap());
    let mut entry =
        Entry::expected(key, None, Cause::Submit, Timestamp::UNIX_EPOCH, &Limits::default());
    entry.due_at = Some(due_at);
    entry
}

fn intent(run: &str, position: u64) -> Intent {
    let request = JobRequest::extract("https://example.com/", FetchOptions::default()).unwrap();
    let submission = Submission { run: run.to_owned(), position, request, reference: None };
    Intent::open(&submission, "t".to_owned(), Timestamp::UNIX_EPOCH, &Limits::default())
}

/// The keys are part of what is stored: another version must find the same rows.
#[test]
fn places_are_stable() {
    let at = "2026-11-30T12:00:00.5Z".parse().unwrap();
    let mut row = entry(Kind::Crawl, "a", at);
    let place = |partition: &str, sort: &str| {
        Some(Place { partition: partition.to_owned(), sort: sort.to_owned() })
    };
    let sort = "entry#2026-11-30T12:00:00.500000000Z#crawl#a";
    assert_eq!(due_of(&row), place("open#2", sort));
    let post = Post::first("t".to_owned(), at, &Limits::default());
    row.state = State::Resubmitting { post };
    assert_eq!(due_of(&row), place("post#crawl", sort));
    row.link = Some(Link {
        submission: "s".to_owned(),
        lineage: row.key.job_id.clone(),
        attempt: 0,
        base: 0,
        request: None,
        reference: Some(String::new()),
    });
    let empty = "ref#e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(listed(&row), place(empty, "crawl#a"));
    let open = intent("run", 7);
    let sort = format!("intent#1970-01-01T00:03:30.000000000Z#{}", open.id);
    assert_eq!(due_of_intent(&open), place("post#extract", &sort));
    let sort = format!("72756e#00000000000000000007#{}", open.id);
    assert_eq!(Some(listed_intent(&open)), place("run#0", &sort));
}

/// DQ-05: nothing that is settled is due, whatever else it says.
#[test]
fn a_terminal_row_has_no_place_among_the_due() {
    let at = Timestamp::UNIX_EPOCH;
    let state = State::Dead { reason: DeadReason::Gone, error: None, result: None };
    let row = entry(Kind::Extract, "a", at).settled(state, Cause::Work, at, &Limits::default());
    assert_eq!(due_of(&row), None);
    assert_eq!(due_of(&Entry { due_at: Some(at), ..row }), None);
}

/// PL-03: the longest keys fit, and no key is empty.
#[test]
fn the_longest_places_fit_their_keys() {
    let longest = "x".repeat(domain::limits::JOB_ID_BYTES_MAX);
    let due = due_of(&entry(Kind::Extract, &longest, Timestamp::MAX)).unwrap();
    assert!(due.sort.len() < 200, "{}", due.sort.len());
    let run = "\u{20ac}".repeat(domain::limits::REF_BYTES_MAX / 3);
    let listed = listed_intent(&intent(&run, u64::MAX));
    assert!(listed.sort.len() <= SORT_KEY_BYTES_MAX, "{}", listed.sort.len());
    let nameless = listed_intent(&intent("", 0));
    assert!(!nameless.partition.is_empty() && !nameless.sort.is_empty());
}

#[test]
fn every_row_lies_in_a_partition_that_is_read() {
    let partitions = entry_partitions();
    for number in 0..1_000 {
        let row = entry(Kind::Batch, &number.to_string(), Timestamp::UNIX_EPOCH);
        assert!(partitions.contains(&due_of(&row).unwrap().partition));
        assert!(run_partitions().contains(&run_partition(&number.to_string())));
    }
    let shards: std::collections::BTreeSet<_> =
        (0..1_000).map(|number| shard(&number.to_string(), DUE_SHARDS)).collect();
    assert_eq!(shards.len(), usize::from(DUE_SHARDS));
}

fn instants() -> impl Strategy<Value = Timestamp> {
    let (first, last) = (-62_135_596_800_i64, Timestamp::MAX.as_second());
    (first..=last, 0_i32..1_000_000_000)
        .prop_map(|(second, nanos)| Timestamp::new(second, nanos).unwrap_or(Timestamp::MAX))
}

proptest! {
    /// Text sorts as time does, to the nanosecond, and bounds hold what is due and nothing else.
    #[test]
    fn due_rows_sort_by_time(left in instants(), right in instants(), now in instants()) {
        let sort = |at| due_of(&entry(Kind::Extract, "a", at)).unwrap().sort;
        prop_assert_eq!(sort(left).cmp(&sort(right)), left.cmp(&right));
        let (lowest, highest) = entries_until(now);
        prop_assert_eq!(sort(left) <= highest, left <= now);
        prop_assert!(sort(left) > lowest);
    }

    /// Intents sort by run, position and id, whatever the run's name.
    #[test]
    fn intents_sort_by_run_and_position(
        left in (".{0,6}", any::<u64>()), right in (".{0,6}", any::<u64>()),
    ) {
        let (left, right) = (intent(&left.0, left.1), intent(&right.0, right.1));
        let place = |it: &Intent| (it.run.clone(), it.position, it.id.clone());
        let sorts = (listed_intent(&left).sort, listed_intent(&right).sort);
        prop_assert_eq!(sorts.0.cmp(&sorts.1), place(&left).cmp(&place(&right)));
        let (lowest, highest) = intents_of(Some(&left.run));
        prop_assert!(lowest < sorts.0 && sorts.0 < highest);
        prop_assert_eq!(lowest < sorts.1 && sorts.1 < highest, left.run == right.run);
        let (lowest, highest) = intents_of(None);
        prop_assert!(lowest < sorts.0 && sorts.0 < highest);
    }
}

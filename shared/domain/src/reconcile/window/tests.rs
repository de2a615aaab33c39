use super::*;
use crate::job::JobStatus;
use crate::ports::Listed;

fn at(second: u64) -> Timestamp {
    after(Timestamp::UNIX_EPOCH, Duration::from_secs(second))
}

fn window(from: u64, to: u64) -> Window {
    Window { from: at(from), to: at(to) }
}

/// Jobs with these numbers, each created at its second.
fn page(numbers: impl IntoIterator<Item = u64>) -> ListPage {
    let listed = |number: u64| Listed {
        job_id: JobId::parse(&format!("j{number}")).unwrap(),
        status: JobStatus::Completed,
        created_at: Some(at(number)),
        url: None,
        accepted_urls: None,
        formats: None,
        render_js: None,
    };
    let jobs = numbers.into_iter().map(listed).collect();
    ListPage { jobs, unreadable: 0, page_count: None, is_capped: false }
}

const SURE: Next = Next::End { doubtful: false };
const DOUBTFUL: Next = Next::End { doubtful: true };

#[test]
fn halves_share_the_middle_and_have_an_end() {
    let (older, newer) = window(0, 10).halves().unwrap();
    assert_eq!((older, newer), (window(0, 5), window(5, 10)));
    assert_eq!(window(0, 1).halves(), None);
    let mut window = Window { from: Timestamp::MIN, to: Timestamp::MAX };
    let mut depth = 0;
    while let Some((older, _)) = window.halves() {
        window = older;
        depth += 1;
    }
    assert!(depth < 64, "{depth}");
}

/// SC-06: a list ends with an empty page, whatever it says of its pages.
#[test]
fn a_list_ends_with_an_empty_page_whatever_it_counts() {
    for page_count in [None, Some(0), Some(1), Some(9)] {
        let mut pages = Pages::new(window(0, 1_000));
        for number in 1..=3 {
            let full = ListPage { page_count, ..page(number * 100..(number + 1) * 100) };
            assert_eq!(pages.note(u32::try_from(number).unwrap(), &full), Next::Page);
        }
        assert_eq!(pages.note(4, &ListPage { page_count, ..page([]) }), SURE, "{page_count:?}");
    }
}

/// A short page is not the last one: a platform may give fewer entries than it was asked for.
#[test]
fn a_short_page_is_not_the_end() {
    let mut pages = Pages::new(window(0, 1_000));
    assert_eq!(pages.note(1, &page(0..50)), Next::Page);
    assert_eq!(pages.note(2, &page(50..100)), Next::Page);
    assert_eq!(pages.note(3, &page([])), SURE);
}

/// SC-06: an endpoint that ignores the page number ends, and does not hide what it never showed.
#[test]
fn a_repeated_page_ends_the_list_or_its_halves_are_read() {
    let mut pages = Pages::new(window(0, 1_000));
    assert_eq!(pages.note(1, &page(0..60)), Next::Page);
    assert_eq!(pages.note(2, &page(0..60)), SURE);

    let mut pages = Pages::new(window(0, 1_000));
    assert_eq!(pages.note(1, &page(0..100)), Next::Page);
    assert_eq!(pages.note(2, &page(0..100)), Next::Halves);

    let of_many = |numbers| ListPage { page_count: Some(7), ..page(numbers) };
    let mut pages = Pages::new(window(0, 1_000));
    assert_eq!(pages.note(1, &of_many(0..50)), Next::Page);
    assert_eq!(pages.note(2, &of_many(0..50)), Next::Halves);

    // A second that is too full to be read is let go, and said to be in doubt.
    let mut pages = Pages::new(window(7, 8));
    let instant = || {
        let mut list = page(0..100);
        list.jobs.iter_mut().for_each(|listed| listed.created_at = Some(at(7)));
        list
    };
    assert_eq!(pages.note(1, &instant()), Next::Page);
    assert_eq!(pages.note(2, &instant()), DOUBTFUL);
}

/// SC-06: a list that is capped is read in halves until it is not; a short one is all there is.
#[test]
fn a_capped_list_is_read_in_halves() {
    let capped = |numbers| ListPage { is_capped: true, page_count: Some(2), ..page(numbers) };
    assert_eq!(Pages::new(window(0, 1_000)).note(1, &capped(0..100)), Next::Halves);
    assert_eq!(Pages::new(window(0, 1_000)).note(1, &capped(0..99)), Next::Page);
    let long = ListPage { page_count: Some(101), ..page(0..100) };
    assert_eq!(Pages::new(window(0, 1_000)).note(1, &long), Next::Halves);
}

/// Dates that are ignored make no list shorter: it is walked page by page, to a hard limit.
#[test]
fn a_list_that_ignores_the_dates_is_walked_page_by_page() {
    let capped = |numbers| ListPage { is_capped: true, ..page(numbers) };
    let mut pages = Pages::new(window(0, 10));
    assert_eq!(pages.note(1, &capped(0..100)), Next::Page);
    assert_eq!(pages.note(WINDOW_PAGES_MAX, &page(100..200)), Next::Page);
    assert_eq!(pages.note(LIST_PAGES_MAX, &page(200..300)), DOUBTFUL);
}

/// Entries that cannot be read are something: the list goes on behind them.
#[test]
fn a_page_of_unreadable_entries_is_not_the_end() {
    let mut pages = Pages::new(window(0, 1_000));
    let nothing_readable = ListPage { unreadable: 100, ..page([]) };
    assert_eq!(pages.note(1, &nothing_readable), Next::Page);
    assert_eq!(pages.note(2, &nothing_readable), Next::Page);
    assert_eq!(pages.note(3, &page([])), SURE);
}

/// However a list behaves, the walk ends.
#[test]
fn every_walk_has_an_end() {
    let mut pages = Pages::new(window(0, 0));
    let nothing_readable = ListPage { unreadable: 1, ..page([]) };
    assert_eq!(pages.note(LIST_PAGES_MAX, &nothing_readable), DOUBTFUL);
}

use super::*;
use crate::time::after;

const OVERLAP: Duration = Duration::from_secs(10);

fn at(second: u64) -> Timestamp {
    after(Timestamp::UNIX_EPOCH, Duration::from_secs(second))
}

fn last(newest: u64) -> Walk {
    Walk { newest: Some(at(newest)), ..Walk::over(Window { from: at(0), to: at(1_000) }, true) }
}

fn walked(saved: &mut Saved, walk: &Walk) -> After {
    saved.walked(walk, OVERLAP, at(2_000))
}

const DONE: After = After::Done { unsure: false };
const UNSURE: After = After::Done { unsure: true };

/// The watermark is the platform's own time less the overlap, and not ours.
#[test]
fn a_list_of_one_page_raises_the_watermark_at_once() {
    let mut saved = Saved::default();
    assert_eq!(walked(&mut saved, &last(500)), DONE);
    assert_eq!((saved.watermark, saved.candidate), (Some(at(490)), None));
    assert_eq!(saved.walked_at, Some(at(2_000)));
    // It never falls, and an empty list leaves it where it is.
    assert_eq!(walked(&mut saved, &last(100)), DONE);
    assert_eq!(walked(&mut saved, &Walk { newest: None, ..last(0) }), DONE);
    assert_eq!(saved.watermark, Some(at(490)));
}

/// SC-05: what took several pages counts once a second walk has found nothing that was missed.
#[test]
fn a_list_of_several_pages_is_confirmed_by_the_next_walk() {
    let long = || Walk { is_long: true, ..last(500) };
    let mut saved = Saved::default();
    assert_eq!(walked(&mut saved, &long()), DONE);
    assert_eq!((saved.watermark, saved.candidate.unwrap().at), (None, at(490)));
    assert!(long().should_be_known(Some(at(490)), saved.candidate));
    assert!(long().should_be_known(None, saved.candidate));
    assert!(!long().should_be_known(Some(at(491)), saved.candidate));
    // The second walk finds one that the first has missed; the third finds none.
    assert_eq!(walked(&mut saved, &Walk { missed: 1, ..long() }), DONE);
    assert_eq!((saved.watermark, saved.candidate.unwrap().failures), (None, 1));
    assert_eq!(walked(&mut saved, &Walk { newest: Some(at(600)), ..long() }), DONE);
    assert_eq!((saved.watermark, saved.candidate.unwrap().at), (Some(at(490)), at(590)));
}

/// SC-04: a list that never comes to rest, or holds an entry that is never read, is let go in the
/// end, and is said to be.
#[test]
fn what_can_never_be_confirmed_is_let_go() {
    for flawed in
        [Walk { is_flawed: true, ..last(500) }, Walk { is_long: true, missed: 3, ..last(500) }]
    {
        let mut saved = Saved::default();
        let outcomes: Vec<_> = (0..=WALKS_MAX).map(|_| walked(&mut saved, &flawed)).collect();
        assert!(outcomes.iter().take(4).all(|outcome| *outcome == DONE), "{outcomes:?}");
        assert_eq!(outcomes.last(), Some(&UNSURE));
        assert_eq!((saved.watermark, saved.candidate), (Some(at(490)), None));
    }
}

/// A window of the past is walked again at once, until a walk finds nothing that was missed.
#[test]
fn a_window_of_the_past_is_walked_again_at_once() {
    let past = |walk: &Walk| Walk { newest: Some(at(500)), is_long: true, ..walk.clone() };
    let mut saved = Saved::default();
    let mut walk = Walk::over(Window { from: at(0), to: at(600) }, false);
    assert!(!walk.should_be_known(None, None));
    for missed in [9, 1] {
        let outcome = walked(&mut saved, &Walk { missed, ..past(&walk) });
        let After::Again(next) = outcome else { panic!("{outcome:?}") };
        assert!(next.should_be_known(Some(at(1)), None));
        assert_eq!((next.window, next.page, next.missed), (walk.window, 1, 0));
        walk = next;
    }
    assert_eq!(saved.watermark, None);
    assert_eq!(walked(&mut saved, &past(&walk)), DONE);
    assert_eq!((saved.watermark, saved.walked_at), (Some(at(490)), None));

    let restless = Walk { missed: 1, earlier: WALKS_MAX - 1, ..past(&walk) };
    assert_eq!(walked(&mut saved, &restless), UNSURE);
}

#[test]
fn of_two_runs_the_one_that_is_ahead_is_kept() {
    let ahead = Saved { watermark: Some(at(9)), walked_at: Some(at(1)), ..Saved::default() };
    let behind = Saved { watermark: Some(at(5)), walked_at: Some(at(2)), ..Saved::default() };
    let both = Saved { walked_at: Some(at(2)), ..ahead.clone() };
    assert_eq!(Saved::merged(ahead.clone(), &behind), both);
    assert_eq!(Saved::merged(behind, &ahead), both);
}

/// The stored form: another version's is not read, and the comparison begins anew.
#[test]
fn the_stored_form_is_stable() {
    let saved = Saved {
        watermark: Some(at(5)),
        candidate: Some(Candidate { at: at(6), failures: 1 }),
        walk: Some(Walk { page: 7, ..last(8) }),
        walked_at: Some(at(9)),
        tried_at: None,
        ..Saved::default()
    };
    let json = serde_json::to_string(&saved).unwrap();
    assert_eq!(
        json,
        "{\"format\":1,\"watermark\":\"1970-01-01T00:00:05Z\",\
         \"candidate\":{\"at\":\"1970-01-01T00:00:06Z\",\"failures\":1},\
         \"walk\":{\"window\":{\"from\":\"1970-01-01T00:00:00Z\",\"to\":\"1970-01-01T00:16:40Z\"},\
         \"is_last\":true,\"page\":7,\"earlier\":0,\"newest\":\"1970-01-01T00:00:08Z\",\
         \"missed\":0,\"is_flawed\":false,\"is_long\":false},\
         \"walked_at\":\"1970-01-01T00:00:09Z\",\"tried_at\":null}"
    );
    assert_eq!(serde_json::from_str::<Saved>(&json).unwrap(), saved);
    let later = json.replace("\"format\":1", "\"format\":2");
    assert!(serde_json::from_str::<Saved>(&later).is_err());
}

#[test]
fn what_ended_early_goes_on_soon_and_the_rest_when_its_time_has_come() {
    let every = Duration::from_mins(5);
    let is_due = |saved: &Saved, second| saved.is_due(every, at(second));
    assert!(is_due(&Saved::default(), 0));
    let whole = Saved { walked_at: Some(at(100)), ..Saved::default() };
    assert!(!is_due(&whole, 399) && is_due(&whole, 400));
    let early = Saved { tried_at: Some(at(200)), ..whole.clone() };
    assert!(!is_due(&early, 229) && is_due(&early, 230));
    let over = Saved { tried_at: Some(at(90)), ..whole };
    assert!(!is_due(&over, 399) && is_due(&over, 400));
}

use proptest::prelude::*;

use super::*;

fn found(sort: u8) -> Found {
    let sort = format!("{sort:03}");
    Found { key: Key { pk: format!("job#{sort}"), sk: "extract".to_owned() }, sort }
}

/// Partitions as a table reads them: so many places at a time, after a sort key.
fn read(partitions: &[Vec<u8>], after: Option<&str>, at_most: usize, limit: usize) -> Places {
    let part = |places: &Vec<u8>| {
        let mut places: Vec<_> = places.iter().copied().map(found).collect();
        places.sort_unstable();
        places.retain(|place| after.is_none_or(|after| place.sort.as_str() > after));
        let is_whole = places.len() <= at_most;
        places.truncate(at_most);
        let read_to = places.last().map(|place| place.sort.clone()).filter(|_| !is_whole);
        Part { found: places, read_to }
    };
    merge(partitions.iter().map(part).collect(), limit)
}

proptest! {
    /// However far each partition is read, the pages hold each place once and in order.
    #[test]
    fn pages_of_several_partitions_are_one_list(
        partitions in prop::collection::vec(prop::collection::btree_set(any::<u8>(), 0..20), 1..5),
        at_most in 1_usize..8,
        limit in 1_usize..8,
    ) {
        let mut all: Vec<_> = (0..=u8::MAX).collect();
        // Each place lies in one partition.
        let partitions: Vec<Vec<u8>> = partitions.iter().map(|places| {
            let (here, rest) = all.iter().partition::<Vec<u8>, _>(|place| places.contains(place));
            all = rest;
            here
        }).collect();
        let mut wanted: Vec<_> = partitions.iter().flatten().copied().map(found).collect();
        wanted.sort_unstable();
        let mut listed = Vec::new();
        let mut after = None;
        for _ in 0..200 {
            let page = read(&partitions, after.as_deref(), at_most, limit);
            prop_assert!(page.found.len() <= limit);
            listed.extend(page.found);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        prop_assert_eq!(after, None);
        prop_assert_eq!(listed, wanted);
    }
}

/// A partition that was left after empty pages is gone on with from where it was left.
#[test]
fn an_empty_part_that_was_not_read_to_its_end_is_gone_on_with() {
    let unread = Part { found: Vec::new(), read_to: Some("005".to_owned()) };
    let whole = Part { found: vec![found(3), found(7)], read_to: None };
    let page = merge(vec![unread, whole], 10);
    assert_eq!(page, Places { found: vec![found(3)], next: Some("005".to_owned()) });
}

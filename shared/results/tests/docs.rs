//! What the documents say is what they show.

/// docs/results.md includes docs/results.sql, which other tests run, verbatim.
#[test]
fn the_documented_views_are_the_tested_ones() {
    let document = include_str!("../../../docs/results.md");
    let views = include_str!("../../../docs/results.sql");
    assert!(document.contains(&format!("```sql\n{views}```")), "copy docs/results.sql into it");
}

use std::collections::BTreeSet;
use std::path::Path;

use super::*;

/// The page of rights and the advice name the same actions.
#[test]
fn every_right_of_the_command_line_is_named_where_it_is_missing() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/iam.json");
    let page: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(page).unwrap()).unwrap();
    let declared: BTreeSet<String> = page["roles"]["cli"]
        .as_array()
        .unwrap()
        .iter()
        .map(|right| right["action"].as_str().unwrap().to_owned())
        .collect();
    let named: BTreeSet<String> = ACTIONS
        .iter()
        .flat_map(|(.., actions)| actions.split_whitespace())
        .filter(|word| word.contains(':') && !word.starts_with("kms:"))
        .map(str::to_owned)
        .collect();
    assert_eq!(named, declared);
}

#[test]
fn the_code_is_found_in_what_is_kept_of_an_answer() {
    let told = |text: &str| {
        let error = PortError::new("ledger", "load", ErrorKind::Denied);
        code(&error.with_source(text.to_owned()))
    };
    let aws = "AWS answered 400 with ExpiredTokenException: The token ... (request R)";
    assert_eq!(told(aws).as_deref(), Some("ExpiredTokenException"));
    let s3 = "S3 answered 403 with AccessDenied: with all that (request R)";
    assert_eq!(told(s3).as_deref(), Some("AccessDenied"));
    let bare = "AWS answered 400 with AWS.SimpleQueueService.NonExistentQueue";
    assert_eq!(told(bare).as_deref(), Some("AWS.SimpleQueueService.NonExistentQueue"));
    for other in ["the call did not get through", "AWS answered", ""] {
        assert_eq!(told(other), None, "{other}");
    }
}

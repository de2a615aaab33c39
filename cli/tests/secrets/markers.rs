//! Texts that nobody may see, and the search for them.

/// The account's API key.
pub(crate) const KEY: &str = "kqMarker0f1e-ApiKey-Z93x7w";
/// A signing secret, and the one before it.
pub(crate) const SECRET: &str = "whMarkerb42a-Signing-u8Yq5t";
pub(crate) const OLD_SECRET: &str = "owMarker7c55-Retired-e2Lf8g";
/// A field of a delivery's body.
pub(crate) const BODY: &str = "bdMarker91c0-InBody-r4Kp2m";
/// The content of a page.
pub(crate) const PAGE: &str = "pgMarker2ab7-InPage-n6Hd1c";
/// A query of a URL.
pub(crate) const QUERY: &str = "quMarker6f33-InQuery-v3Js9b";

const ALL: [&str; 6] = [KEY, SECRET, OLD_SECRET, BODY, PAGE, QUERY];
/// Bytes at either end of a marker by which a cut one is recognised too.
const END_BYTES: usize = 12;
/// Bytes of a marker that are looked for as a list of numbers, which `Debug` makes of bytes.
const LISTED_BYTES: usize = 6;

/// The markers in a text, whole, cut, in other case, in hex, or as a list of bytes.
pub(crate) fn found(text: &str) -> Vec<&'static str> {
    let text = text.to_lowercase();
    ALL.into_iter().filter(|marker| shows(&text, marker)).collect()
}

/// Whether a text in lower case shows a marker.
fn shows(text: &str, marker: &str) -> bool {
    let lower = marker.to_lowercase();
    let listed: Vec<String> =
        marker.bytes().take(LISTED_BYTES).map(|byte| byte.to_string()).collect();
    let forms = [
        lower[..END_BYTES].to_owned(),
        lower[lower.len() - END_BYTES..].to_owned(),
        hex::encode(marker),
        listed.join(", "),
    ];
    forms.iter().any(|form| text.contains(form))
}

/// Fails when a text shows a marker that is not among those that were asked for.
#[track_caller]
pub(crate) fn assert_none(text: &str, asked: &[&str], what: &str) {
    let mut found = found(text);
    found.retain(|marker| !asked.contains(marker));
    assert!(found.is_empty(), "{what} shows {found:?}:\n{text}");
}

/// The search is no flatterer: it finds what is there in any of the forms.
#[test]
fn markers_are_found() {
    for marker in ALL {
        let half = &marker[..=marker.len() / 2];
        let bytes = marker.as_bytes();
        for text in [
            format!("x{marker}y"),
            format!("cut: {half}"),
            marker.to_uppercase(),
            hex::encode(marker),
            format!("{bytes:?}"),
            format!("{:?}", &marker[marker.len() / 2 - 1..]),
        ] {
            assert_eq!(found(&text), [marker], "{text}");
        }
    }
    assert_eq!(found("an innocent text, [107, 113], Marker"), Vec::<&str>::new());
}

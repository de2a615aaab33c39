use super::*;

/// PL-09: upper and lower case, braces and URN are one job.
#[test]
fn spellings_of_one_uuid_are_one_id() {
    let canonical = "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d";
    for text in [
        canonical,
        "0A1B2C3D-4E5F-4A6B-8C7D-9E0F1A2B3C4D",
        "{0A1B2C3D-4E5F-4A6B-8C7D-9E0F1A2B3C4D}",
        "urn:uuid:0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d",
    ] {
        assert_eq!(JobId::parse(text).unwrap().as_str(), canonical);
    }
}

/// PL-09: what is not a UUID keeps its exact bytes.
#[test]
fn other_ids_keep_their_bytes() {
    for text in ["j1", "J1", "0A1B2C3D4E5F4A6B8C7D9E0F1A2B3C4D", "a%2Fb", "a_b", "..."] {
        assert_eq!(JobId::parse(text).unwrap().as_str(), text);
    }
}

/// PL-03, WK-21: empty, blank and over-long ids are refused at the door, counted in bytes, and so is
/// what has two spellings or changes a path.
#[test]
fn unusable_ids_are_refused() {
    let long = |count: usize| "a".repeat(count);
    assert_eq!(JobId::parse(""), Err(JobIdError::Empty));
    assert_eq!(JobId::parse("   "), Err(JobIdError::Character));
    for bytes in [129, 1100, 1500, 2048, 2049] {
        assert_eq!(JobId::parse(&long(bytes)), Err(JobIdError::TooLong { bytes }));
    }
    assert_eq!(JobId::parse(&"\u{20ac}".repeat(700)), Err(JobIdError::TooLong { bytes: 2100 }));
    assert!(JobId::parse(&long(128)).is_ok());
    for text in ["a/b", "A/B", "a b", "a\n", "\u{e9}", "e\u{301}", "a\0"] {
        assert_eq!(JobId::parse(text), Err(JobIdError::Character), "{text:?}");
    }
    for text in [".", ".."] {
        assert_eq!(JobId::parse(text), Err(JobIdError::Dots));
    }
}

/// CL-04: unknown spellings are kept and are not terminal.
#[test]
fn unknown_statuses_survive() {
    for text in ["expired", "COMPLETED", ""] {
        let status = JobStatus::from_api(text);
        assert_eq!(status, JobStatus::Unknown(text.into()));
        assert!(!status.is_terminal());
        assert_eq!(status.as_str(), text);
    }
    assert!(JobStatus::from_api("cancelled").is_terminal());
}

/// PL-06: texts from outside are cut between characters.
#[test]
fn long_texts_are_cut_between_characters() {
    for length in [31, 63, 79, 127, 199, 255, 299] {
        let text = format!("{}\u{e9}\u{e9}", "a".repeat(length));
        let error = JobError::new(&text, &text, false);
        assert!(error.code.chars().count() <= 64 && error.message.chars().count() <= 300);
    }
}

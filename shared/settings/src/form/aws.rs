//! Names of AWS resources. What is checked is what tells a wrong value at the start; whether the
//! resource exists shows at the first call.

use url::Url;

use super::Raw;

/// Most secrets that are named: a receiver tries no more of them.
const SECRET_IDS_MAX: usize = domain::signature::SECRETS_MAX;
/// Longest name or ARN of a secret. Source: AWS Secrets Manager, `SecretId`.
const SECRET_ID_BYTES_MAX: usize = 2_048;
/// Longest prefix of keys, in bytes. S3 allows keys of 1,024 bytes, of which results need a part.
const PREFIX_BYTES_MAX: usize = 256;

/// Which characters a name may have beside letters and digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    /// A stack: `-`, and a letter first.
    Stack,
    /// A region: `-`, and no capitals.
    Region,
    /// A table: `-`, `.` and `_`.
    Table,
    /// A bucket: `-` and `.`, no capitals, and neither mark at an end.
    Bucket,
}

impl Marks {
    /// The characters as a person reads them.
    pub(super) const fn told(self) -> &'static str {
        match self {
            Self::Stack => "letters, digits and `-`, a letter first",
            Self::Region => "small letters, digits and `-`",
            Self::Table => "letters, digits and `-._`",
            Self::Bucket => "small letters, digits and `-.`, a letter or digit at both ends",
        }
    }

    fn allow(self, byte: u8) -> bool {
        match self {
            Self::Stack => byte.is_ascii_alphanumeric() || byte == b'-',
            Self::Region => is_small(byte) || byte == b'-',
            Self::Table => byte.is_ascii_alphanumeric() || b"-._".contains(&byte),
            Self::Bucket => is_small(byte) || b"-.".contains(&byte),
        }
    }

    fn allow_ends(self, name: &str) -> bool {
        match self {
            Self::Stack => name.starts_with(|c: char| c.is_ascii_alphabetic()),
            Self::Region | Self::Table => true,
            Self::Bucket => !name.starts_with(['-', '.']) && !name.ends_with(['-', '.']),
        }
    }
}

const fn is_small(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

impl Raw {
    pub(crate) fn name(&self, min: usize, max: usize, marks: Marks) -> Option<String> {
        let name = self.text()?;
        let is_name = (min..=max).contains(&name.len())
            && name.bytes().all(|byte| marks.allow(byte))
            && marks.allow_ends(name);
        is_name.then(|| name.to_owned())
    }

    /// The URL of a standard queue, whose name has no full stop. In a FIFO queue later messages of
    /// a group wait for earlier ones, which the workers neither need nor keep to.
    pub(crate) fn queue_url(&self) -> Option<String> {
        let text = self.url()?;
        let queue = Url::parse(&text).ok()?.path_segments()?.next_back()?.to_owned();
        let is_plain = queue.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
        (!queue.is_empty() && is_plain).then_some(text)
    }

    /// Parts between single `/`, as they stand in keys.
    pub(crate) fn key_prefix(&self) -> Option<String> {
        let prefix = self.text()?;
        let is_part = |part: &str| {
            let is_plain = part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._=".contains(&b));
            is_plain && !matches!(part, "" | "." | "..")
        };
        let is_prefix = prefix.len() <= PREFIX_BYTES_MAX && prefix.split('/').all(is_part);
        is_prefix.then(|| prefix.to_owned())
    }

    pub(crate) fn secret_id(&self) -> Option<String> {
        self.text().filter(|id| is_secret_id(id)).map(str::to_owned)
    }

    pub(crate) fn secret_ids(&self) -> Option<Vec<String>> {
        let ids = self.list()?;
        let is_list = (1..=SECRET_IDS_MAX).contains(&ids.len())
            && ids.iter().all(|id| is_secret_id(id))
            && ids.iter().enumerate().all(|(at, id)| !ids.iter().take(at).any(|other| other == id));
        is_list.then_some(ids)
    }
}

/// Whether a text may be a secret's name, or its ARN.
fn is_secret_id(text: &str) -> bool {
    let is_plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"/_+=.@-:".contains(&b));
    let is_name = !text.contains(':') || text.starts_with("arn:");
    (1..=SECRET_ID_BYTES_MAX).contains(&text.len()) && is_plain && is_name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        Raw::Text(text.to_owned())
    }

    #[test]
    fn names_have_the_characters_that_aws_allows() {
        let stack = |text: &str| raw(text).name(1, 128, Marks::Stack).is_some();
        let table = |text: &str| raw(text).name(3, 255, Marks::Table).is_some();
        let bucket = |text: &str| raw(text).name(3, 63, Marks::Bucket).is_some();
        let region = |text: &str| raw(text).name(4, 32, Marks::Region).is_some();
        assert!(stack("g") && stack(" Gleaner-2 ") && !stack("2-gleaner") && !stack("a_b"));
        assert!(table("a.b_C-1") && !table("ab") && !table("a b c") && !table("arn:aws:x"));
        assert!(bucket("a.b-1") && !bucket("A.b-1") && !bucket("-ab") && !bucket("ab."));
        assert!(!bucket(&"a".repeat(64)) && !bucket("schlüssel"));
        assert!(region("eu-central-1") && !region("EU-CENTRAL-1") && !region(""));
    }

    /// WK-20: a FIFO queue is refused at the start.
    #[test]
    fn a_queue_is_a_standard_queue() {
        let queue = |text: &str| raw(text).queue_url().is_some();
        assert!(queue("https://sqs.eu-central-1.amazonaws.com/123456789012/tasks"));
        assert!(queue("http://127.0.0.1:4566/000000000000/tasks"));
        for text in [
            "https://sqs.eu-central-1.amazonaws.com/123456789012/tasks.fifo",
            "https://sqs.eu-central-1.amazonaws.com/",
            "https://user:word@sqs.eu-central-1.amazonaws.com/1/tasks",
            "arn:aws:sqs:eu-central-1:123456789012:tasks",
            "tasks",
        ] {
            assert!(!queue(text), "{text}");
        }
    }

    #[test]
    fn a_prefix_is_parts_of_a_key() {
        let prefix = |text: &str| raw(text).key_prefix().is_some();
        assert!(prefix("prod") && prefix("team=a/prod_1"));
        for text in ["", "/prod", "prod/", "a//b", "a/../b", ".", "a b", "é", &"a".repeat(257)] {
            assert!(!prefix(text), "{text}");
        }
    }

    #[test]
    fn secrets_are_named_or_given_by_arn_each_once() {
        let arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:gleaner/extract-a1B2c3";
        let ids = |text: &str| raw(text).secret_ids().map(|ids| ids.len());
        assert_eq!(ids(arn), Some(1));
        assert_eq!(ids(&format!("gleaner/extract, {arn}")), Some(2));
        for text in ["", "a,", "a,a", "a b", "x:y", "é", &"s".repeat(2_049)] {
            assert_eq!(ids(text), None, "{text}");
        }
        let many = |count: usize| {
            (0..count).map(|number| format!("s{number}")).collect::<Vec<_>>().join(",")
        };
        assert_eq!((ids(&many(30)), ids(&many(31))), (Some(30), None));
        assert!(raw(arn).secret_id().is_some() && raw("a,b").secret_id().is_none());
    }
}

//! Objects of the result store as they lie there: what keys look like, and which bytes hold which
//! content. All result stores share this, so that one content has one size and one checksum.

use std::io::{self, Read, Write};

use flate2::bufread::MultiGzDecoder;
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};

use crate::entry::StoredObject;

/// Longest key, in bytes. Source: Amazon S3, object keys have at most 1,024 bytes.
pub const KEY_BYTES_MAX: usize = 1_024;
/// Longest segment of a key, in bytes: file names on Linux, macOS and Windows have at most 255,
/// and an unfinished file is named after its object with 20 bytes more.
pub const KEY_SEGMENT_BYTES_MAX: usize = 235;
/// Largest plain content of one object, in bytes: 256 MiB. Pages are far smaller; the bound keeps
/// a damaged or hostile object from filling the memory.
pub const CONTENT_BYTES_MAX: usize = 256 * 1_024 * 1_024;
/// Compression level of gzip objects: the usual middle between time and size.
pub const GZIP_LEVEL: u32 = 6;

/// Why a text is no key of the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The text is empty.
    #[error("the object key is empty")]
    Empty,
    /// The text, or one of its segments, is too long.
    #[error(
        "an object key has at most {KEY_BYTES_MAX} bytes, and {KEY_SEGMENT_BYTES_MAX} between two slashes"
    )]
    TooLong,
    /// A character that the layout does not use.
    #[error(
        "an object key holds lower-case letters, digits, `-`, `_`, `=`, `.` and single slashes only"
    )]
    Character,
    /// A segment that is empty or begins with a dot.
    #[error("a segment of an object key is empty or begins with a dot")]
    Segment,
}

/// Checks that a key is one of the layout's, see [`crate::place`].
///
/// Only characters that every file system and object store keeps apart are allowed, and no
/// upper-case letters, so that two keys are two files also where names ignore case.
///
/// # Errors
/// Names the first rule that is broken.
pub fn check_key(key: &str) -> Result<(), KeyError> {
    if key.is_empty() {
        return Err(KeyError::Empty);
    }
    if key.len() > KEY_BYTES_MAX {
        return Err(KeyError::TooLong);
    }
    for segment in key.split('/') {
        if segment.is_empty() || segment.starts_with('.') {
            return Err(KeyError::Segment);
        }
        if segment.len() > KEY_SEGMENT_BYTES_MAX {
            return Err(KeyError::TooLong);
        }
        let known = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_=.".contains(&byte)
        };
        if !segment.bytes().all(known) {
            return Err(KeyError::Character);
        }
    }
    Ok(())
}

/// Checks the beginning of keys that a listing asks for: empty, or characters of keys.
///
/// # Errors
/// Names the first rule that is broken.
pub fn check_prefix(prefix: &str) -> Result<(), KeyError> {
    match prefix.strip_suffix('/').unwrap_or(prefix) {
        "" if prefix.is_empty() => Ok(()),
        "" => Err(KeyError::Segment),
        rest => check_key(rest),
    }
}

/// Whether the object under this key is gzip.
pub fn is_gzip(key: &str) -> bool {
    matches!(key.rsplit_once('.'), Some((_, "gz")))
}

/// The bytes that hold `content` under `key`: gzip without a time in its header, or the content
/// itself.
///
/// # Errors
/// When the content is larger than [`CONTENT_BYTES_MAX`].
pub fn encode(key: &str, content: &[u8]) -> io::Result<Vec<u8>> {
    if content.len() > CONTENT_BYTES_MAX {
        return Err(too_large());
    }
    if !is_gzip(key) {
        return Ok(content.to_vec());
    }
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::new(GZIP_LEVEL));
    encoder.write_all(content)?;
    encoder.finish()
}

/// The content that `bytes` hold under `key`; checksum and length of gzip are verified.
///
/// # Errors
/// When the bytes are damaged, or hold more than [`CONTENT_BYTES_MAX`].
pub fn decode(key: &str, bytes: &[u8]) -> io::Result<Vec<u8>> {
    if !is_gzip(key) {
        return if bytes.len() > CONTENT_BYTES_MAX { Err(too_large()) } else { Ok(bytes.to_vec()) };
    }
    let cap = u64::try_from(CONTENT_BYTES_MAX).unwrap_or(u64::MAX);
    let mut content = Vec::new();
    MultiGzDecoder::new(bytes).take(cap + 1).read_to_end(&mut content)?;
    if content.len() > CONTENT_BYTES_MAX {
        return Err(too_large());
    }
    Ok(content)
}

/// The description of an object with these bytes.
pub fn describe(key: &str, bytes: &[u8]) -> StoredObject {
    StoredObject {
        key: key.to_owned(),
        bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        sha256: hex::encode(Sha256::digest(bytes)),
        empty: false,
        unsettled: false,
    }
}

fn too_large() -> io::Error {
    io::Error::new(
        io::ErrorKind::FileTooLarge,
        format!("the content of an object has at most {CONTENT_BYTES_MAX} bytes"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const GZ: &str = "kind=extract/dt=2026-11-30/a.json.gz";

    /// WK-21: what would change a path, or be one file for two keys, is refused.
    #[test]
    fn keys_outside_the_layout_are_refused() {
        for key in [GZ, "kind=batch/dt=2026-11-30/_4a1/_manifest.json", "a"] {
            assert_eq!(check_key(key), Ok(()), "{key}");
        }
        for (key, error) in [
            ("", KeyError::Empty),
            ("/a", KeyError::Segment),
            ("a/", KeyError::Segment),
            ("a//b", KeyError::Segment),
            ("..", KeyError::Segment),
            ("a/../b", KeyError::Segment),
            ("a/.b", KeyError::Segment),
            ("A", KeyError::Character),
            ("a\\b", KeyError::Character),
            ("a%2fb", KeyError::Character),
            ("a b", KeyError::Character),
            ("a\0", KeyError::Character),
            ("caf\u{e9}", KeyError::Character),
            ("c:a", KeyError::Character),
        ] {
            assert_eq!(check_key(key), Err(error), "{key:?}");
        }
        assert_eq!(check_key(&"a".repeat(KEY_SEGMENT_BYTES_MAX)), Ok(()));
        assert_eq!(check_key(&"a".repeat(KEY_SEGMENT_BYTES_MAX + 1)), Err(KeyError::TooLong));
        assert_eq!(check_key(&"a/".repeat(600)), Err(KeyError::TooLong));
    }

    #[test]
    fn prefixes_are_empty_or_like_keys() {
        for prefix in ["", "kind=", "kind=extract/", "kind=extract/dt=2026-11-30/_4a"] {
            assert_eq!(check_prefix(prefix), Ok(()), "{prefix}");
        }
        for prefix in ["/", "../", "a//", "A", "a/../"] {
            assert!(check_prefix(prefix).is_err(), "{prefix}");
        }
    }

    #[test]
    fn the_bytes_depend_on_the_content_alone() {
        let content = "{\"a\":\"\u{20ac}\u{0}\"}".repeat(100);
        let first = encode(GZ, content.as_bytes()).unwrap();
        assert_eq!(encode(GZ, content.as_bytes()).unwrap(), first);
        assert_eq!(first[4..8], [0; 4], "no time in the header");
        assert!(first.len() < content.len());
        assert_eq!(decode(GZ, &first).unwrap(), content.as_bytes());
        assert_eq!(encode("_manifest.json", b"{}").unwrap(), b"{}");
        assert_eq!(decode("_manifest.json", b"{}").unwrap(), b"{}");
    }

    /// Every damaged byte and every cut is noticed, but for header fields that carry nothing.
    #[test]
    fn damage_is_noticed() {
        let whole = encode(GZ, b"a result that matters").unwrap();
        for end in 0..whole.len() {
            assert!(decode(GZ, &whole[..end]).is_err(), "cut at {end}");
        }
        let carries_nothing = 3..10;
        for at in (0..whole.len()).filter(|at| !carries_nothing.contains(at)) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x55;
            assert!(decode(GZ, &damaged).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_bomb_is_cut_off() {
        let zeros = vec![0; 1 << 20];
        let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
        for _ in 0..=256 {
            encoder.write_all(&zeros).unwrap();
        }
        let bomb = encoder.finish().unwrap();
        assert!(bomb.len() < 1 << 20);
        assert_eq!(decode(GZ, &bomb).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn a_description_names_size_and_checksum() {
        let object = describe("a", b"abc");
        assert_eq!(object.bytes, 3);
        assert_eq!(
            object.sha256,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}

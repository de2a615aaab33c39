//! What lies on disk afterwards.

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// All files below a folder.
pub(crate) fn files(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files
}

/// The mode of a file or folder.
pub(crate) fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// What a file holds; results are compressed.
fn content(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    if path.extension().is_none_or(|extension| extension != "gz") {
        return bytes;
    }
    let mut inflated = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut inflated).unwrap();
    inflated
}

/// Files below a folder that hold one of the secrets, relative to it and sorted.
pub(crate) fn holders(root: &Path, secrets: &[&str]) -> Vec<String> {
    let holds = |path: &PathBuf| {
        let bytes = content(path);
        secrets
            .iter()
            .any(|secret| bytes.windows(secret.len()).any(|window| window == secret.as_bytes()))
    };
    let mut held: Vec<String> = files(root)
        .into_iter()
        .filter(holds)
        .map(|path| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned())
        .collect();
    held.sort();
    held
}

/// Fails unless the secrets file alone holds secrets, and only its owner may read it.
#[track_caller]
pub(crate) fn assert_kept(root: &Path, secrets: &[&str]) {
    let data = root.join("gleaner-data");
    assert_eq!(mode(&data), 0o700);
    assert_eq!(holders(root, secrets), ["gleaner-data/secrets.json"]);
    assert_eq!(mode(&data.join("secrets.json")), 0o600);
}

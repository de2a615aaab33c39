//! How large a zip is. Nobody needs the zip itself.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use flate2::Compression;
use flate2::write::DeflateEncoder;

/// What stands around a file in a zip, but for its name twice, in bytes: the two headers.
const AROUND_FILE: u64 = 30 + 46;
/// What stands at the end of a zip, in bytes.
const END: u64 = 22;
/// Modules of a virtual environment that are not deployed: the runtime brings its own, and the
/// installer stays behind.
const NOT_DEPLOYED: [&str; 9] = [
    "_distutils_hack",
    "awslambdaric",
    "distutils-precedence",
    "pip",
    "pkg_resources",
    "runtime_client",
    "setuptools",
    "simplejson",
    "snapshot_restore_py",
];

/// The size of a zip of these files under these names, deflated as zips usually are.
pub(super) fn bytes(files: &[(String, PathBuf)]) -> Result<u64> {
    let mut sum = END;
    for (name, path) in files {
        let mut deflated = DeflateEncoder::new(Vec::new(), Compression::default());
        deflated.write_all(&std::fs::read(path)?)?;
        let file = u64::try_from(deflated.finish()?.len())?;
        sum += AROUND_FILE + 2 * u64::try_from(name.len())? + file;
    }
    Ok(sum)
}

/// The modules of a virtual environment that a function is deployed with.
pub(super) fn modules(lib: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut files = Vec::new();
    for version in std::fs::read_dir(lib)? {
        let root = version?.path().join("site-packages");
        if root.is_dir() {
            walk(&root, "", &mut files)?;
        }
    }
    Ok(files)
}

fn walk(folder: &Path, below: &str, files: &mut Vec<(String, PathBuf)>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_left = below.is_empty() && NOT_DEPLOYED.iter().any(|left| name.starts_with(left));
        if is_left || name == "__pycache__" || name.ends_with(".dist-info") {
            continue;
        }
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), &format!("{below}{name}/"), files)?;
        } else {
            files.push((format!("{below}{name}"), entry.path()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zip_is_as_large_as_its_parts() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        std::fs::write(&file, "a".repeat(10_000)).unwrap();
        let one = bytes(&[("bootstrap".to_owned(), file.clone())]).unwrap();
        assert!((116..200).contains(&one), "{one}");
        let two = bytes(&[("bootstrap".to_owned(), file.clone()), ("bootstrap".to_owned(), file)]);
        assert_eq!(two.unwrap(), 2 * one - 22);
    }

    #[test]
    fn what_is_not_deployed_is_left_out() {
        let lib = tempfile::tempdir().unwrap();
        let packages = lib.path().join("python3.11/site-packages");
        for module in ["boto3/__pycache__", "awslambdaric", "boto3-1.dist-info", "pip/pip"] {
            std::fs::create_dir_all(packages.join(module)).unwrap();
            std::fs::write(packages.join(module).join("a.py"), "").unwrap();
        }
        std::fs::write(packages.join("boto3/client.py"), "").unwrap();
        let files = modules(lib.path()).unwrap();
        let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["boto3/client.py"]);
    }
}

//! Foreign bytes on disk: the seeds of the fuzz targets, and the inputs that once broke something.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Largest file read, in bytes; seeds are small, so that a person can read them.
pub const INPUT_BYTES_MAX: u64 = 64 * 1024; // 64 KiB

/// One input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Where it lies.
    pub path: PathBuf,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// All inputs of one target, seeds and former crashes, in the order of their paths.
///
/// # Errors
/// When the seeds cannot be read, or one is larger than [`INPUT_BYTES_MAX`]. A target without
/// former crashes has no folder for them.
pub fn inputs(target: &str) -> io::Result<Vec<Input>> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let mut paths = files(&fuzz.join("corpus").join(target))?;
    let crashes = fuzz.join("crashes").join(target);
    if crashes.is_dir() {
        paths.extend(files(&crashes)?);
    }
    paths.sort();
    paths.into_iter().map(read).collect()
}

fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let paths = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    paths.collect()
}

fn read(path: PathBuf) -> io::Result<Input> {
    if fs::metadata(&path)?.len() > INPUT_BYTES_MAX {
        let text = format!("{} is larger than a seed may be", path.display());
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    let bytes = fs::read(&path)?;
    Ok(Input { path, bytes })
}

/// Variants of each input that [`check`] tries beside it, in each of the two ways.
const VARIANTS_MAX: usize = 24;

/// Checks every input of a target, then cut and damaged variants of each: the same few every time.
///
/// # Panics
/// When there are fewer than `at_least` inputs, and as `check` does; the input is named first.
pub fn check(target: &str, at_least: usize, check: impl Fn(&[u8])) {
    let inputs = match inputs(target) {
        Ok(inputs) => inputs,
        Err(error) => unreachable!("the inputs of `{target}` cannot be read: {error}"),
    };
    assert!(inputs.len() >= at_least, "`{target}` has {} inputs only", inputs.len());
    for Input { path, bytes } in &inputs {
        let tried = Tried(path);
        check(bytes);
        let step = bytes.len() / VARIANTS_MAX + 1;
        for at in (0..bytes.len()).step_by(step) {
            let (head, tail) = bytes.split_at(at);
            check(head);
            let (damaged, rest) =
                tail.split_first().map_or((0, tail), |(byte, rest)| (*byte, rest));
            check(&[head, &[damaged ^ 0x41], rest].concat());
        }
        drop(tried);
    }
}

/// Names the input in the output of a test that panics.
struct Tried<'p>(&'p Path);

impl Drop for Tried<'_> {
    #[expect(clippy::print_stderr, reason = "the panic does not know which input it was")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("tried {} and variants of it", self.0.display());
        }
    }
}

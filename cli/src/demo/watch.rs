//! Watches the results folder while the demo runs: an object that appears shall never change.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use domain::ports::Clock;
use domain::time::between;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Shortest pause between two looks at the folder.
const LOOK_PAUSE: Duration = Duration::from_millis(200);
/// The pause is at least so many times as long as the look before it: a large folder is not looked
/// at all the time.
const PAUSE_RATIO: u32 = 10;
/// Deepest folder of the layout: kind, date, job.
const DEPTH_MAX: usize = 4;

/// What tells one file from another under the same name.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    inode: u64,
    bytes: u64,
    modified_ns: i128,
}

/// A watch in the background.
pub(super) struct Watcher {
    end: oneshot::Sender<()>,
    task: JoinHandle<Vec<PathBuf>>,
}

impl Watcher {
    /// Starts watching.
    pub(super) fn start(root: PathBuf, clock: Arc<dyn Clock>) -> Self {
        let (end, mut ended) = oneshot::channel();
        let task = tokio::spawn(async move {
            let mut seen = BTreeMap::new();
            let mut changed = Vec::new();
            loop {
                let root = root.clone();
                let began = clock.now();
                let files = tokio::task::spawn_blocking(move || files(&root)).await;
                compare(&mut seen, files.unwrap_or_default(), &mut changed);
                let pause = LOOK_PAUSE.max(between(began, clock.now()) * PAUSE_RATIO);
                tokio::select! {
                    biased;
                    _ = &mut ended => return changed,
                    () = clock.sleep(pause) => {}
                }
            }
        });
        Self { end, task }
    }

    /// Ends the watch; returns the objects that changed or vanished.
    pub(super) async fn finish(self) -> Vec<PathBuf> {
        let _ = self.end.send(());
        self.task.await.unwrap_or_default()
    }
}

fn compare(
    seen: &mut BTreeMap<PathBuf, Identity>,
    files: BTreeMap<PathBuf, Identity>,
    changed: &mut Vec<PathBuf>,
) {
    for (path, identity) in &*seen {
        if files.get(path) != Some(identity) {
            changed.push(path.clone());
        }
    }
    *seen = files;
}

fn files(root: &Path) -> BTreeMap<PathBuf, Identity> {
    let mut found = BTreeMap::new();
    for path in objects(root) {
        if let Ok(metadata) = path.metadata() {
            let identity = Identity {
                inode: metadata.ino(),
                bytes: metadata.len(),
                modified_ns: i128::from(metadata.mtime()) * 1_000_000_000
                    + i128::from(metadata.mtime_nsec()),
            };
            found.insert(path, identity);
        }
    }
    found
}

/// All objects under the root, by walking it: hidden and unfinished files are none.
pub(super) fn objects(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![(root.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with('.') {
                continue;
            }
            if path.is_dir() && depth < DEPTH_MAX {
                folders.push((path, depth + 1));
            } else if name.ends_with(".json.gz")
                || name.ends_with(".ndjson.gz")
                || name == "_manifest.json"
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

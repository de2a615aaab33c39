//! One sync of a folder for all objects that were linked into it before the sync began.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Mutex as Turn;

/// Most folders that are known at once; beyond it those that nobody waits for are forgotten.
const FOLDERS_MAX: usize = 512;

/// The folders into which objects were linked.
#[derive(Debug, Default)]
pub(crate) struct Linked {
    folders: Mutex<BTreeMap<PathBuf, Arc<Folder>>>,
}

/// Links into one folder, counted, and up to which of them they are known to be durable.
#[derive(Debug, Default)]
struct Folder {
    made: AtomicU64,
    synced: Turn<Synced>,
}

#[derive(Debug, Default)]
struct Synced {
    upto: u64,
    /// A sync up to here failed. A later one that succeeds says nothing about these links: the
    /// system may have forgotten what it could not write.
    failed_upto: u64,
}

impl Linked {
    /// Makes the links durable that were made in this folder before the call: by a sync of one's
    /// own, or by one that somebody else began after them.
    pub(crate) async fn sync<F, W>(&self, folder: &Path, sync: F) -> io::Result<()>
    where
        F: FnOnce() -> W,
        W: Future<Output = io::Result<()>>,
    {
        let folder = self.folder(folder);
        let mine = folder.made.fetch_add(1, Ordering::AcqRel) + 1;
        let mut synced = folder.synced.lock().await;
        if mine <= synced.failed_upto {
            return Err(io::Error::other("the folder could not be synced"));
        }
        if mine <= synced.upto {
            return Ok(());
        }
        let upto = folder.made.load(Ordering::Acquire);
        let done = sync().await;
        match done {
            Ok(()) => synced.upto = upto,
            Err(_) => synced.failed_upto = upto,
        }
        done
    }

    fn folder(&self, path: &Path) -> Arc<Folder> {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folder) = folders.get(path) {
            return Arc::clone(folder);
        }
        if folders.len() >= FOLDERS_MAX {
            folders.retain(|_, folder| Arc::strong_count(folder) > 1);
        }
        Arc::clone(folders.entry(path.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use futures_util::future::join_all;
    use tokio::sync::Semaphore;

    use super::*;

    /// A sync that waits until it is let go.
    async fn held(syncs: &AtomicUsize, gate: &Semaphore, works: bool) -> io::Result<()> {
        syncs.fetch_add(1, Ordering::SeqCst);
        gate.acquire().await.unwrap().forget();
        if works { Ok(()) } else { Err(io::Error::other("a planted failure")) }
    }

    /// Lets syncs end once as many have begun as can without it.
    async fn open(syncs: &AtomicUsize, gate: &Semaphore, permits: usize) {
        tokio::task::yield_now().await;
        assert_eq!(syncs.load(Ordering::SeqCst), 1);
        gate.add_permits(permits);
    }

    /// Links that arrive during a sync are not in it, and share the next one.
    #[tokio::test]
    async fn links_made_during_a_sync_share_the_next_one() {
        let (linked, syncs, gate) = (Linked::default(), AtomicUsize::new(0), Semaphore::new(0));
        let folder = Path::new("dt=2026-11-30");
        let sync = || linked.sync(folder, || held(&syncs, &gate, true));
        let all = join_all((0..50).map(|_| sync()));
        let (done, ()) = tokio::join!(all, open(&syncs, &gate, 3));
        assert!(done.iter().all(Result::is_ok));
        assert_eq!(syncs.load(Ordering::SeqCst), 2);
        // A link that is made after a sync has one of its own.
        sync().await.unwrap();
        assert_eq!(syncs.load(Ordering::SeqCst), 3);
    }

    /// A failed sync fails for all whose links it was about, and for nobody after it.
    #[tokio::test]
    async fn a_failure_is_told_to_all_that_shared_it() {
        let (linked, syncs, gate) = (Linked::default(), AtomicUsize::new(0), Semaphore::new(0));
        let folder = Path::new("dt=2026-11-30");
        let first = linked.sync(folder, || held(&syncs, &gate, true));
        let others = join_all((0..3).map(|_| linked.sync(folder, || held(&syncs, &gate, false))));
        let (first, others, ()) = tokio::join!(first, others, open(&syncs, &gate, 3));
        first.unwrap();
        assert!(others.iter().all(Result::is_err), "{others:?}");
        assert_eq!(syncs.load(Ordering::SeqCst), 2, "the failure was shared");
        linked.sync(folder, || held(&syncs, &gate, true)).await.unwrap();
    }

    #[tokio::test]
    async fn the_memory_of_folders_is_bounded() {
        let linked = Linked::default();
        for number in 0..=FOLDERS_MAX {
            let folder = PathBuf::from(format!("d{number}"));
            linked.sync(&folder, || async { Ok(()) }).await.unwrap();
        }
        assert_eq!(linked.folders.lock().unwrap().len(), 1);
    }
}

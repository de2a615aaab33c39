//! What the disk needs beside `object_store`: puts, durable folders, ordered listing, cleaning up.
//!
//! See docs/decisions/0001-results-on-disk.md for what each side does.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use domain::object::check_key;
use domain::time::{Timestamp, between};

use crate::error::OpenError;

/// Age at which an unfinished file belongs to nobody any more: no put takes an hour.
const LEFTOVER_AGE: Duration = Duration::from_hours(1);
/// Unfinished files of one object at a time: far more than processes put it at once.
const UNFINISHED_MAX: u32 = 1_000;
/// Most folders whose durability is remembered; beyond it they are made durable again.
const DURABLE_FOLDERS_MAX: usize = 512;
/// Deepest folder of the layout is `kind=/dt=/<job>/`; deeper ones hold nothing of ours.
const DEPTH_MAX: usize = 8;
/// Beginning of the names of the files that [`probe`] makes.
const PROBE: &str = ".probe-";

/// The folder of a result store.
pub(crate) struct Disk {
    root: PathBuf,
    /// Folders below the root whose entries, up to the root, were made durable by this process.
    durable: Mutex<BTreeSet<PathBuf>>,
}

impl Disk {
    /// Opens a folder, makes it if it is not there, and removes what crashed processes left.
    pub(crate) fn open(root: &Path, now: Timestamp) -> Result<Self, OpenError> {
        let path = || root.to_owned();
        if root.exists() && !root.is_dir() {
            return Err(OpenError::NotAFolder { path: path() });
        }
        create_durably(root).map_err(|source| OpenError::Create { path: path(), source })?;
        let root =
            root.canonicalize().map_err(|source| OpenError::Create { path: path(), source })?;
        probe(&root)?;
        remove_leftovers(&root, now, DEPTH_MAX)
            .map_err(|source| OpenError::Search { path: root.clone(), source })?;
        Ok(Self { root, durable: Mutex::default() })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Writes an object whole and links it under its key, unless there is one: then `false`. Its
    /// bytes are durable, its name is not until its folder is synced.
    pub(crate) fn link_new(&self, key: &str, bytes: &[u8]) -> io::Result<bool> {
        let object = self.root.join(key);
        let (mut file, unfinished) = create_unfinished(&object)?;
        let linked = file
            .write_all(bytes)
            .and_then(|()| file.sync_data())
            .and_then(|()| fs::hard_link(&unfinished, &object));
        // What cannot be removed is removed when it is old enough.
        let _ = fs::remove_file(&unfinished);
        match linked {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The folder of an object.
    pub(crate) fn folder_of(&self, key: &str) -> PathBuf {
        let object = self.root.join(key);
        object.parent().unwrap_or(&self.root).to_owned()
    }

    /// Whether the entries of all folders above an object are known to be durable.
    pub(crate) fn has_durable_folders(&self, key: &str) -> bool {
        self.durable().contains(&self.folder_of(key))
    }

    /// Makes the entries of all folders above an object durable, up to the root.
    ///
    /// Another process may have made them and crashed before it could; the object would go with
    /// them.
    pub(crate) fn make_folders_durable(&self, key: &str) -> io::Result<()> {
        let folder = self.folder_of(key);
        if self.durable().contains(&folder) {
            return Ok(());
        }
        let below_root = |folder: &&Path| folder.starts_with(&self.root) && *folder != self.root;
        for folder in folder.ancestors().take_while(below_root) {
            sync_parent(folder)?;
        }
        let mut durable = self.durable();
        if durable.len() >= DURABLE_FOLDERS_MAX {
            durable.clear();
        }
        durable.insert(folder);
        Ok(())
    }

    fn durable(&self) -> std::sync::MutexGuard<'_, BTreeSet<PathBuf>> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists keys under a prefix that come after `after`, in order, at most `limit`.
    pub(crate) fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> io::Result<Vec<String>> {
        let mut listing = Listing { prefix, after, limit, keys: Vec::new() };
        listing.walk(&self.root, "", DEPTH_MAX)?;
        Ok(listing.keys)
    }
}

/// One listing on its way through the folders.
struct Listing<'a> {
    prefix: &'a str,
    after: Option<&'a str>,
    limit: usize,
    keys: Vec<String>,
}

impl Listing<'_> {
    /// Walks the folder whose keys begin with `start`. Folders that cannot hold a key that is
    /// asked for are not opened.
    fn walk(&mut self, folder: &Path, start: &str, depth: usize) -> io::Result<()> {
        if depth == 0 {
            return Ok(());
        }
        // Folders sort as their keys do, that is, with the slash.
        let mut names = BTreeSet::new();
        let mut files = BTreeSet::new();
        for entry in children(folder)? {
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().map(|name| format!("{start}{name}")) else {
                continue;
            };
            if entry.file_type()?.is_dir() {
                names.insert(name + "/");
            } else if self.wants(&name) {
                files.insert(name);
            }
            // However many files there are, the first ones are enough.
            if files.len() > self.limit {
                files.pop_last();
            }
        }
        names.append(&mut files);
        for name in names {
            if self.keys.len() >= self.limit {
                return Ok(());
            }
            if !name.ends_with('/') {
                self.keys.push(name);
            } else if self.may_hold(&name) {
                let below = name.strip_prefix(start).unwrap_or(&name);
                self.walk(&folder.join(below), &name, depth - 1)?;
            }
        }
        Ok(())
    }

    fn wants(&self, key: &str) -> bool {
        key.starts_with(self.prefix)
            && self.after.is_none_or(|after| key > after)
            && check_key(key).is_ok()
    }

    fn may_hold(&self, start: &str) -> bool {
        let is_in_prefix = start.starts_with(self.prefix) || self.prefix.starts_with(start);
        is_in_prefix && self.after.is_none_or(|after| start > after || after.starts_with(start))
    }
}

/// The entries of a folder; none if it is gone meanwhile.
fn children(folder: &Path) -> io::Result<impl Iterator<Item = io::Result<fs::DirEntry>>> {
    match fs::read_dir(folder) {
        Ok(entries) => Ok(Some(entries).into_iter().flatten()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None.into_iter().flatten()),
        Err(error) => Err(error),
    }
}

/// Makes a file beside an object that nobody else has, and the folders above it.
fn create_unfinished(object: &Path) -> io::Result<(File, PathBuf)> {
    let mut number = 1;
    loop {
        let mut path = object.as_os_str().to_owned();
        path.push(format!("#{number}"));
        let path = PathBuf::from(path);
        match File::create_new(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists && number < UNFINISHED_MAX =>
            {
                number += 1;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && number < UNFINISHED_MAX => {
                // Counted as a try, should somebody keep removing the folder.
                number += 1;
                fs::create_dir_all(object.parent().unwrap_or(object))?;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Makes a folder and those above it, and makes their entries durable.
fn create_durably(folder: &Path) -> io::Result<()> {
    let missing: Vec<_> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    fs::create_dir_all(folder)?;
    missing.into_iter().try_for_each(sync_parent)
}

/// Makes the entry of a file or folder in the folder above it durable.
fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => sync_folder(Path::new(".")),
        Some(parent) => sync_folder(parent),
        None => Ok(()),
    }
}

#[cfg(unix)]
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Other systems cannot sync a folder; theirs are durable as far as the file system cares.
#[cfg(not(unix))]
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::metadata(folder).map(drop)
}

/// Finds out whether files can be made and linked in a folder.
fn probe(root: &Path) -> Result<(), OpenError> {
    let file = tempfile::Builder::new()
        .prefix(PROBE)
        .tempfile_in(root)
        .map_err(|source| OpenError::NotWritable { path: root.to_owned(), source })?;
    let mut link = file.path().as_os_str().to_owned();
    link.push("-link");
    fs::hard_link(file.path(), &link)
        .and_then(|()| fs::remove_file(&link))
        .map_err(|source| OpenError::NoHardLinks { path: root.to_owned(), source })
}

/// Removes unfinished files that are old enough to belong to nobody.
fn remove_leftovers(folder: &Path, now: Timestamp, depth: usize) -> io::Result<()> {
    if depth == 0 {
        return Ok(());
    }
    for entry in children(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_leftovers(&entry.path(), now, depth - 1)?;
        } else if is_leftover(&entry.file_name().to_string_lossy()) {
            let modified = Timestamp::try_from(entry.metadata()?.modified()?);
            if modified.is_ok_and(|modified| between(modified, now) > LEFTOVER_AGE) {
                fs::remove_file(entry.path())?;
            }
        }
    }
    Ok(())
}

/// Whether a file's name is that of an unfinished one, `<object>#<number>`.
fn is_leftover(name: &str) -> bool {
    let is_staged = name.rsplit_once('#').is_some_and(|(object, number)| {
        !object.is_empty() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    is_staged || name.starts_with(PROBE)
}

#[cfg(test)]
mod tests;

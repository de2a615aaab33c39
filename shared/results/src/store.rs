use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use domain::entry::StoredObject;
use domain::object::{self, CONTENT_BYTES_MAX, KeyError};
use domain::ports::{ErrorKind, PortError, PutOutcome, Results};
use domain::time::Timestamp;
use futures_util::TryStreamExt;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path as Location;
use object_store::{
    Attribute, Attributes, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
};

use crate::disk::{Disk, sync_folder};
use crate::error::{OpenError, disk_error, store_error};
use crate::linked::Linked;
#[cfg(feature = "aws")]
use crate::s3::Bucket;

/// Content above this many bytes is compressed on a blocking thread: a quarter of a mebibyte
/// takes a few milliseconds, longer than which no other task of the thread shall wait.
const INLINE_BYTES_MAX: usize = 256 * 1_024;
/// Stored bytes above this many are decompressed on a blocking thread: they may be eight times
/// as many and more when they are plain.
const INLINE_STORED_BYTES_MAX: usize = INLINE_BYTES_MAX / 8;
/// The operation in errors of a put.
const PUT: &str = "put";

/// A result store over `object_store`; needs a Tokio runtime.
///
/// An object is put only if there is none under its key, and then whole and durably: a crash at
/// any instruction leaves nothing under the name, or everything. Content has at most
/// [`CONTENT_BYTES_MAX`] bytes.
#[derive(Clone)]
pub struct ObjectResults {
    store: Arc<dyn ObjectStore>,
    place: Place,
}

/// What the place of the objects needs beside `object_store`'s common part.
#[derive(Clone)]
pub(crate) enum Place {
    Disk(Arc<Disk>, Arc<Linked>),
    Memory,
    #[cfg(feature = "aws")]
    Bucket(Arc<Bucket>),
}

impl ObjectResults {
    pub(crate) fn new(store: Arc<dyn ObjectStore>, place: Place) -> Self {
        Self { store, place }
    }

    /// A store in a folder, which is made if it is not there. Unfinished files that are an hour
    /// old at `now` are removed.
    ///
    /// # Errors
    /// When the folder cannot hold results, see [`OpenError`].
    pub fn on_disk(root: &Path, now: Timestamp) -> Result<Self, OpenError> {
        let disk = Disk::open(root, now)?;
        let store = LocalFileSystem::new_with_prefix(disk.root())
            .map_err(|source| OpenError::Open { path: root.to_owned(), source })?;
        Ok(Self::new(Arc::new(store), Place::Disk(Arc::new(disk), Arc::default())))
    }

    /// A store that is gone with the process.
    pub fn in_memory() -> Self {
        Self::new(Arc::new(InMemory::new()), Place::Memory)
    }

    /// Puts an object into another store; `None` if there is one.
    async fn put_in_store(
        &self,
        key: &str,
        content: &[u8],
    ) -> Result<Option<StoredObject>, PortError> {
        let bytes = Bytes::from(encode(key, content).await?);
        let description = object::describe(key, &bytes);
        let attributes = Attributes::from_iter([(Attribute::ContentType, content_type(key))]);
        let options = PutOptions { mode: PutMode::Create, attributes, ..PutOptions::default() };
        let payload = PutPayload::from_bytes(bytes);
        match self.store.put_opts(&location(PUT, key)?, payload, options).await {
            Ok(_) => Ok(Some(description)),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(None),
            Err(error) => Err(store_error(PUT, error)),
        }
    }

    /// Reads an object; `None` if there is none.
    async fn get(
        &self,
        operation: &'static str,
        key: &str,
    ) -> Result<Option<(StoredObject, Vec<u8>)>, PortError> {
        let found = match self.store.get(&location(operation, key)?).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(store_error(operation, error)),
        };
        if usize::try_from(found.meta.size).map_or(true, |size| size > CONTENT_BYTES_MAX) {
            return Err(corrupt(operation, key, "it is larger than any result"));
        }
        let bytes = found.bytes().await.map_err(|error| store_error(operation, error))?;
        let is_long = bytes.len() > INLINE_STORED_BYTES_MAX;
        let owned = key.to_owned();
        let open = move || (object::describe(&owned, &bytes), object::decode(&owned, &bytes));
        let (description, content) =
            if is_long { off_thread(operation, open).await? } else { open() };
        match content {
            Ok(content) => Ok(Some((description, content))),
            Err(error) => Err(corrupt(operation, key, &error.to_string())),
        }
    }

    /// Lists where the store itself lists in order.
    async fn list_ordered(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, PortError> {
        const OPERATION: &str = "list";
        let folder = prefix.rsplit_once('/').map(|(folder, _)| location(OPERATION, folder));
        let folder = folder.transpose()?;
        let mut found = match after {
            Some(after) => {
                self.store.list_with_offset(folder.as_ref(), &location(OPERATION, after)?)
            }
            None => self.store.list(folder.as_ref()),
        };
        let mut keys = Vec::new();
        while keys.len() < limit {
            let next = found.try_next().await.map_err(|error| store_error(OPERATION, error))?;
            let Some(object) = next else { break };
            let key = object.location.to_string();
            if key.starts_with(prefix) {
                keys.push(key);
            } else if key.as_str() > prefix {
                break;
            }
        }
        Ok(keys)
    }
}

#[async_trait]
impl Results for ObjectResults {
    async fn put_new(&self, key: &str, content: &[u8]) -> Result<PutOutcome, PortError> {
        object::check_key(key).map_err(|error| invalid_key(PUT, error))?;
        let put = if let Place::Disk(disk, linked) = &self.place {
            put_on_disk(disk, linked, key, content).await?
        } else {
            self.put_in_store(key, content).await?
        };
        if let Some(object) = put {
            return Ok(PutOutcome::Now(object));
        }
        let found = self.get(PUT, key).await?;
        let (object, content) = found.ok_or_else(|| vanished(PUT, key))?;
        Ok(PutOutcome::Already { object, content })
    }

    async fn read(&self, key: &str) -> Result<Option<(StoredObject, Vec<u8>)>, PortError> {
        const OPERATION: &str = "read";
        object::check_key(key).map_err(|error| invalid_key(OPERATION, error))?;
        self.get(OPERATION, key).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<String>, PortError> {
        const OPERATION: &str = "list";
        object::check_prefix(prefix).map_err(|error| invalid_key(OPERATION, error))?;
        after.map_or(Ok(()), object::check_key).map_err(|error| invalid_key(OPERATION, error))?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        match &self.place {
            Place::Disk(disk, _) => {
                let (prefix, after) = (prefix.to_owned(), after.map(str::to_owned));
                on_folder(disk, OPERATION, move |disk| disk.list(&prefix, after.as_deref(), limit))
                    .await
            }
            Place::Memory => self.list_ordered(prefix, after, limit).await,
            #[cfg(feature = "aws")]
            Place::Bucket(bucket) => bucket.list(prefix, after, limit).await,
        }
    }
}

/// Runs what the disk needs on a blocking thread.
async fn on_folder<T: Send + 'static>(
    disk: &Arc<Disk>,
    operation: &'static str,
    act: impl FnOnce(&Disk) -> std::io::Result<T> + Send + 'static,
) -> Result<T, PortError> {
    let disk = Arc::clone(disk);
    let done = off_thread(operation, move || act(&disk)).await?;
    done.map_err(|error| disk_error(operation, error))
}

/// Puts an object on disk; `None` if there is one. Either way its name is durable.
async fn put_on_disk(
    disk: &Arc<Disk>,
    linked: &Linked,
    key: &str,
    content: &[u8],
) -> Result<Option<StoredObject>, PortError> {
    let bytes = encode(key, content).await?;
    let act = {
        let (disk, key) = (Arc::clone(disk), key.to_owned());
        move || {
            let linked = disk.link_new(&key, &bytes).map_err(|error| disk_error(PUT, error))?;
            Ok(linked.then(|| object::describe(&key, &bytes)))
        }
    };
    let put = off_thread(PUT, act).await??;
    let folder = disk.folder_of(key);
    let sync = || async {
        let folder = folder.clone();
        tokio::task::spawn_blocking(move || sync_folder(&folder)).await?
    };
    linked.sync(&folder, sync).await.map_err(|error| disk_error(PUT, error))?;
    if !disk.has_durable_folders(key) {
        let key = key.to_owned();
        on_folder(disk, PUT, move |disk| disk.make_folders_durable(&key)).await?;
    }
    Ok(put)
}

/// What an object says that it is. Gzip is named as the type and not as an encoding: readers go by
/// the name's end, and a client that unpacks on the way would change bytes and checksum.
fn content_type(key: &str) -> &'static str {
    match key.rsplit_once('.') {
        Some((_, "gz")) => "application/gzip",
        Some((_, "json")) => "application/json",
        _ => "application/octet-stream",
    }
}

/// The store's name for a key.
fn location(operation: &'static str, key: &str) -> Result<Location, PortError> {
    Location::parse(key).map_err(|error| {
        PortError::new("results", operation, ErrorKind::Invalid).with_source(error)
    })
}

fn invalid_key(operation: &'static str, error: KeyError) -> PortError {
    PortError::new("results", operation, ErrorKind::Invalid).with_source(error)
}

/// The bytes that hold some content. Short content is compressed at once: on a blocking thread it
/// would be quicker, but there are many of those, and each keeps the memory of its last stream.
async fn encode(key: &str, content: &[u8]) -> Result<Vec<u8>, PortError> {
    let bytes = if content.len() > INLINE_BYTES_MAX && object::is_gzip(key) {
        let (key, content) = (key.to_owned(), content.to_vec());
        off_thread(PUT, move || object::encode(&key, &content)).await?
    } else {
        object::encode(key, content)
    };
    bytes.map_err(too_large)
}

/// Content beyond [`CONTENT_BYTES_MAX`].
fn too_large(error: std::io::Error) -> PortError {
    PortError::new("results", PUT, ErrorKind::Invalid).with_source(error)
}

fn corrupt(operation: &'static str, key: &str, why: &str) -> PortError {
    PortError::new("results", operation, ErrorKind::Corrupt)
        .with_source(format!("object {key}: {why}"))
}

/// The error of an object that was there a moment ago: somebody removes objects.
fn vanished(operation: &'static str, key: &str) -> PortError {
    PortError::new("results", operation, ErrorKind::Unavailable)
        .with_source(format!("object {key} was removed while it was read"))
}

/// Runs what takes the processor or the disk for long on a blocking thread.
async fn off_thread<T: Send + 'static>(
    operation: &'static str,
    act: impl FnOnce() -> T + Send + 'static,
) -> Result<T, PortError> {
    tokio::task::spawn_blocking(act).await.map_err(|error| {
        PortError::new("results", operation, ErrorKind::Unavailable).with_source(error)
    })
}

#[cfg(test)]
mod tests;

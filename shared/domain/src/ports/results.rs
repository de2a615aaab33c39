use async_trait::async_trait;

use super::PortError;
use crate::entry::StoredObject;

/// Keeps results. An object appears once and never changes.
///
/// Keys ending in `.gz` hold gzip; content is given and returned plain. Compression is
/// deterministic: the same content gives the same bytes.
#[async_trait]
pub trait Results: Send + Sync {
    /// Puts an object if there is none under its key.
    ///
    /// # Contract
    /// Effect: the object exists whole and durably, or not at all. A second call finds the first
    /// one's object and returns it, whatever the content. When the answer is lost the object may
    /// exist. Content is at most the adapter's documented size.
    ///
    /// # Errors
    /// `Corrupt` when an object lies there that cannot be read back; otherwise transient,
    /// `Denied`, or `Invalid` for a key outside the layout.
    async fn put_new(&self, key: &str, content: &[u8]) -> Result<PutOutcome, PortError>;

    /// Reads an object back, plain, with its description; `None` if there is none.
    ///
    /// # Errors
    /// `Corrupt` when it does not decompress; otherwise transient or `Denied`.
    async fn read(&self, key: &str) -> Result<Option<(StoredObject, Vec<u8>)>, PortError>;

    /// Lists keys under a prefix that come after `after`, in order, at most `limit`.
    ///
    /// # Errors
    /// Transient or `Denied`.
    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<String>, PortError>;
}

/// What a conditional put found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutOutcome {
    /// The object was written by this call.
    Now(StoredObject),
    /// An object was there; this is it.
    Already {
        /// Its description.
        object: StoredObject,
        /// Its plain content.
        content: Vec<u8>,
    },
}

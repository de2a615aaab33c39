use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;

use async_trait::async_trait;

use super::lock;
use crate::entry::StoredObject;
use crate::object::{check_key, check_prefix, decode, describe, encode};
use crate::ports::{ErrorKind, PortError, PutOutcome, Results};

/// A result store in memory that holds the very bytes a real one would.
#[derive(Default)]
pub struct MemoryResults {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Vec<u8>>,
    puts: u64,
}

impl MemoryResults {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// How often an object was put, in vain or not.
    pub fn puts(&self) -> u64 {
        lock(&self.state).puts
    }

    /// All keys, in order.
    pub fn keys(&self) -> Vec<String> {
        lock(&self.state).objects.keys().cloned().collect()
    }

    /// The bytes under a key as they lie there.
    pub fn bytes(&self, key: &str) -> Option<Vec<u8>> {
        lock(&self.state).objects.get(key).cloned()
    }

    /// Lays bytes under a key, whatever was there.
    pub fn place(&self, key: &str, bytes: Vec<u8>) {
        lock(&self.state).objects.insert(key.to_owned(), bytes);
    }

    /// Takes an object away; `false` if there is none.
    pub fn remove(&self, key: &str) -> bool {
        lock(&self.state).objects.remove(key).is_some()
    }

    /// Damages an object: cuts its last byte off and turns the one before over. `false` if there
    /// is none.
    pub fn corrupt(&self, key: &str) -> bool {
        let mut state = lock(&self.state);
        let Some(bytes) = state.objects.get_mut(key) else { return false };
        bytes.pop();
        if let Some(last) = bytes.last_mut() {
            *last = !*last;
        }
        true
    }
}

/// The error of an object that cannot be read back.
fn corrupt(operation: &'static str, key: &str, error: &io::Error) -> PortError {
    PortError::new("results", operation, ErrorKind::Corrupt)
        .with_source(format!("object {key}: {error}"))
}

#[async_trait]
impl Results for MemoryResults {
    async fn put_new(&self, key: &str, content: &[u8]) -> Result<PutOutcome, PortError> {
        const OPERATION: &str = "put";
        let invalid = || PortError::new("results", OPERATION, ErrorKind::Invalid);
        check_key(key).map_err(|error| invalid().with_source(error))?;
        let bytes = encode(key, content).map_err(|error| invalid().with_source(error))?;
        let mut state = lock(&self.state);
        state.puts += 1;
        if let Some(existing) = state.objects.get(key) {
            let content = decode(key, existing).map_err(|error| corrupt(OPERATION, key, &error))?;
            return Ok(PutOutcome::Already { object: describe(key, existing), content });
        }
        let object = describe(key, &bytes);
        state.objects.insert(key.to_owned(), bytes);
        Ok(PutOutcome::Now(object))
    }

    async fn read(&self, key: &str) -> Result<Option<(StoredObject, Vec<u8>)>, PortError> {
        const OPERATION: &str = "read";
        check_key(key).map_err(|error| {
            PortError::new("results", OPERATION, ErrorKind::Invalid).with_source(error)
        })?;
        let Some(bytes) = self.bytes(key) else { return Ok(None) };
        let content = decode(key, &bytes).map_err(|error| corrupt(OPERATION, key, &error))?;
        Ok(Some((describe(key, &bytes), content)))
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<String>, PortError> {
        check_prefix(prefix).map_err(|error| {
            PortError::new("results", "list", ErrorKind::Invalid).with_source(error)
        })?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let state = lock(&self.state);
        let keys = state.objects.keys().filter(|key| {
            key.starts_with(prefix) && after.is_none_or(|after| key.as_str() > after)
        });
        Ok(keys.take(limit).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_corrupted_object_is_reported_by_its_key() {
        let results = MemoryResults::new();
        results.put_new("a.json.gz", b"{}").await.unwrap();
        assert!(results.corrupt("a.json.gz"));
        let error = results.read("a.json.gz").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Corrupt);
        assert!(format!("{error:?}").contains("a.json.gz"));
        let error = results.put_new("a.json.gz", b"{}").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Corrupt);
        assert!(!results.corrupt("b.json.gz"));
        assert_eq!(results.puts(), 2);
    }
}

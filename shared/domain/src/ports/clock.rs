use std::time::Duration;

use async_trait::async_trait;

use crate::time::Timestamp;

/// The only way to know and to pass time.
#[async_trait]
pub trait Clock: Send + Sync {
    /// The present instant.
    fn now(&self) -> Timestamp;

    /// Returns after `duration`. Dropping the future ends the wait.
    async fn sleep(&self, duration: Duration);
}

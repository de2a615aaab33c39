use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::ports::{DeadLetter, DeadLetterQueue, PortError};

use super::plan::Surroundings;

/// A dead-letter queue that fails by a plan.
pub struct FaultyDeadLetters {
    inner: Arc<dyn DeadLetterQueue>,
    surroundings: Surroundings,
}

impl FaultyDeadLetters {
    /// Wraps a port.
    pub fn new(inner: Arc<dyn DeadLetterQueue>, surroundings: Surroundings) -> Self {
        Self { inner, surroundings }
    }
}

#[async_trait]
impl DeadLetterQueue for FaultyDeadLetters {
    async fn take(&self, limit: u32, hold: Duration) -> Result<Vec<DeadLetter>, PortError> {
        let effect = self.inner.take(limit, hold);
        self.surroundings.around_port("dead_letters.take", effect).await
    }

    async fn send_back(&self, letter: &DeadLetter) -> Result<(), PortError> {
        let effect = self.inner.send_back(letter);
        self.surroundings.around_port("dead_letters.send_back", effect).await
    }

    async fn remove(&self, letter: &DeadLetter) -> Result<(), PortError> {
        let effect = self.inner.remove(letter);
        self.surroundings.around_port("dead_letters.remove", effect).await
    }

    async fn put_back(&self, letter: &DeadLetter) -> Result<(), PortError> {
        let effect = self.inner.put_back(letter);
        self.surroundings.around_port("dead_letters.put_back", effect).await
    }
}

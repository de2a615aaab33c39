use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use domain::ports::{HeldTask, PortError, Queue, TaskSource};
use domain::task::Task;

use super::plan::Surroundings;

/// A queue that fails by a plan; also a source of tasks if the one it wraps is.
pub struct FaultyQueue<Q> {
    inner: Arc<Q>,
    surroundings: Surroundings,
}

impl<Q> FaultyQueue<Q> {
    /// Wraps a port.
    pub fn new(inner: Arc<Q>, surroundings: Surroundings) -> Self {
        Self { inner, surroundings }
    }
}

#[async_trait]
impl<Q: Queue> Queue for FaultyQueue<Q> {
    async fn send(&self, task: &Task, delay: Duration) -> Result<(), PortError> {
        let effect = self.inner.send(task, delay);
        self.surroundings.around_port("queue.send", effect).await
    }
}

#[async_trait]
impl<Q: TaskSource> TaskSource for FaultyQueue<Q> {
    async fn receive(&self, limit: u32, hold: Duration) -> Result<Vec<HeldTask>, PortError> {
        let effect = self.inner.receive(limit, hold);
        self.surroundings.around_port("queue.receive", effect).await
    }

    async fn acknowledge(&self, held: &HeldTask) -> Result<(), PortError> {
        let effect = self.inner.acknowledge(held);
        self.surroundings.around_port("queue.acknowledge", effect).await
    }
}

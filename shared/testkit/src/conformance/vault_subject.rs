use std::any::Any;
use std::sync::Arc;

use domain::ports::{SecretSource, SlotId, Vault};
use domain::signature::secret::Secret;
use domain::testing::ManualClock;

/// Makes a slot whose current version holds a secret.
type Lay = Box<dyn Fn(&Secret) -> SlotId>;

/// A vault to be tried.
pub struct VaultSubject {
    pub(super) vault: Arc<dyn Vault>,
    pub(super) source: Arc<dyn SecretSource>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) lay: Lay,
    kept: Vec<Box<dyn Any>>,
}

impl VaultSubject {
    /// An empty vault, the source by which a receiver reads the same secrets, the clock of both,
    /// and a way to make a slot whose current version holds a secret that names its webhook.
    pub fn new(
        vault: Arc<dyn Vault>,
        source: Arc<dyn SecretSource>,
        clock: Arc<ManualClock>,
        lay: impl Fn(&Secret) -> SlotId + 'static,
    ) -> Self {
        Self { vault, source, clock, lay: Box::new(lay), kept: Vec::new() }
    }

    /// Keeps something, such as a temporary folder, as long as the vault is tried.
    #[must_use]
    pub fn keeping(mut self, keep: impl Any) -> Self {
        self.kept.push(Box::new(keep));
        self
    }
}

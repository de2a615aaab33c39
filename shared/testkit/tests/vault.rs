//! The vault in memory does what the port promises.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use domain::testing::{ManualClock, MemoryVault};
use testkit::conformance::VaultSubject;

fn vault() -> VaultSubject {
    let clock = Arc::new(ManualClock::default());
    let vault = Arc::new(MemoryVault::new(clock.clone()));
    let (laid, made) = (vault.clone(), AtomicU32::new(0));
    VaultSubject::new(vault.clone(), vault, clock, move |secret| {
        let slot = laid.make(&format!("slot-{}", made.fetch_add(1, Ordering::Relaxed)));
        laid.type_in(&slot, &secret.to_stored());
        slot
    })
}

testkit::vault_conformance! { name: memory, make: vault() }

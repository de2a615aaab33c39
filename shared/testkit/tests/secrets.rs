//! Sources of secrets: the one in memory does what the port promises, also behind a fault wrapper
//! without faults, and with faults the receiver refuses nobody whom it cannot judge.

#![expect(clippy::unwrap_used, reason = "what prepares a test fails by panicking, too")]

use std::sync::Arc;
use std::time::Duration;

use domain::announce::AnnouncePorts;
use domain::envelope::EnvelopeFormat;
use domain::keyring::Keyring;
use domain::limits::Limits;
use domain::ports::{ErrorKind, SecretSource};
use domain::receive::{ReceivePorts, receive};
use domain::signature::preset::Preset;
use domain::signature::secret::Secret;
use domain::signature::sign::sign;
use domain::testing::{ManualClock, MemoryLedger, MemoryQueue, MemorySecrets, SeededRandom};
use testkit::conformance::{Absence, Kept, SecretsCaps, SecretsSubject};
use testkit::faulty::{Fault, FaultPlan, FaultySecrets, Surroundings};

const CAPS: SecretsCaps =
    SecretsCaps { is_live: true, keeps_stages: true, absence: Absence::Empty };

fn put(memory: &MemorySecrets, kept: Kept<'_>) {
    match kept {
        Kept::Secrets(secrets) => memory.set(secrets.to_vec()),
        Kept::Unreadable { beside, text } => {
            memory.set(vec![beside.clone()]);
            memory.add_stored(text);
        }
        Kept::Locked(secret) => {
            memory.set(vec![secret.clone()]);
            memory.fail(ErrorKind::Denied);
        }
        Kept::Nothing => memory.set(Vec::new()),
    }
}

fn memory() -> SecretsSubject {
    let memory = Arc::new(MemorySecrets::default());
    SecretsSubject::new(CAPS, move |kept| {
        put(&memory, kept);
        Some(memory.clone())
    })
}

fn faulty() -> SecretsSubject {
    let memory = Arc::new(MemorySecrets::default());
    let surroundings = Surroundings::new(FaultPlan::none(), Arc::new(ManualClock::default()));
    let faulty = Arc::new(FaultySecrets::new(memory.clone(), surroundings));
    SecretsSubject::new(CAPS, move |kept| {
        put(&memory, kept);
        Some(faulty.clone())
    })
}

testkit::secrets_conformance! { name: memory_secrets, make: memory() }
testkit::secrets_conformance! { name: faulty_secrets, make: faulty() }

const BODY: &[u8] = br#"{"job_id":"j1","event_type":"extract_completed","id":"d1"}"#;

/// A receiver whose source of secrets fails by a plan.
struct Receiver {
    clock: Arc<ManualClock>,
    plan: Arc<FaultPlan>,
    secrets: Arc<MemorySecrets>,
    keyring: Keyring,
    ledger: MemoryLedger,
    queue: MemoryQueue,
    limits: Limits,
}

impl Receiver {
    fn new(plan: Arc<FaultPlan>) -> Self {
        let clock = Arc::new(ManualClock::default());
        let secrets = Arc::new(MemorySecrets::new(vec![Secret::new("first").unwrap()]));
        let surroundings = Surroundings::new(plan.clone(), clock.clone());
        let source: Arc<dyn SecretSource> =
            Arc::new(FaultySecrets::new(secrets.clone(), surroundings));
        let limits = Limits::default();
        let keyring = Keyring::new(source, Preset::Geonode.scheme().unwrap(), &limits);
        let (ledger, queue) = (MemoryLedger::new(), MemoryQueue::new(clock.clone()));
        Self { clock, plan, secrets, keyring, ledger, queue, limits }
    }

    /// The status that a delivery gets which is signed with this secret.
    fn status(&self, secret: &str) -> u16 {
        let (scheme, secret) = (Preset::Geonode.scheme().unwrap(), Secret::new(secret).unwrap());
        let now = domain::ports::Clock::now(self.clock.as_ref());
        let headers = sign(&scheme, &secret, BODY, "d1", now).unwrap();
        let headers: Vec<_> =
            headers.into_iter().map(|(name, value)| (name, value.into_bytes())).collect();
        let (random, format) = (SeededRandom::new(7), EnvelopeFormat::default());
        let ports = ReceivePorts {
            announcing: AnnouncePorts {
                entries: &self.ledger,
                queue: &self.queue,
                clock: self.clock.as_ref(),
                random: &random,
                limits: &self.limits,
            },
            keyring: &self.keyring,
            format: &format,
        };
        testkit::run(receive(ports, &headers, BODY)).status()
    }
}

/// While no secret was ever loaded, the sender shall come again, whoever it is.
#[test]
fn a_failing_first_load_refuses_nobody() {
    for fault in Fault::ALL {
        let receiver = Receiver::new(FaultPlan::at(0, fault));
        assert_eq!(receiver.status("first"), 503, "{fault:?}");
        assert_eq!(receiver.status("wrong"), 503, "{fault:?}");
        assert!(receiver.plan.is_used_up());
        receiver.clock.advance(Duration::from_secs(1));
        assert_eq!(receiver.status("first"), 202, "{fault:?}");
        receiver.clock.advance(receiver.limits.secret_cooldown);
        assert_eq!(receiver.status("wrong"), 401, "{fault:?}");
    }
}

/// A refresh that fails leaves the last good secrets in force.
#[test]
fn a_failing_refresh_keeps_the_last_good_secrets() {
    for fault in Fault::ALL {
        let receiver = Receiver::new(FaultPlan::at(1, fault));
        assert_eq!(receiver.status("first"), 202);
        receiver.clock.advance(receiver.limits.secret_max_age);
        assert_eq!(receiver.status("first"), 202, "{fault:?}");
        assert!(receiver.plan.is_used_up());
        assert_eq!(receiver.status("wrong"), 503, "{fault:?}");
    }
}

/// A secret that nobody knows may be a new one as long as the new ones cannot be loaded.
#[test]
fn a_failing_look_for_newer_secrets_refuses_nobody() {
    for fault in Fault::ALL {
        let receiver = Receiver::new(FaultPlan::at(1, fault));
        assert_eq!(receiver.status("first"), 202);
        receiver.secrets.set(vec![Secret::new("second").unwrap()]);
        receiver.clock.advance(receiver.limits.secret_cooldown);
        assert_eq!(receiver.status("second"), 503, "{fault:?}");
        assert_eq!(receiver.status("second"), 503, "{fault:?}, within the cool-down");
        assert!(receiver.plan.is_used_up());
        assert_eq!(receiver.secrets.loads(), if had_effect(fault) { 2 } else { 1 });
        receiver.clock.advance(receiver.limits.secret_cooldown);
        assert_eq!(receiver.status("second"), 202, "{fault:?}");
        receiver.clock.advance(receiver.limits.secret_cooldown);
        assert_eq!(receiver.status("first"), 401, "{fault:?}");
    }
}

const fn had_effect(fault: Fault) -> bool {
    matches!(fault, Fault::FailAfter | Fault::HangAfter)
}

/// Each kind of the port's errors, unreadable secrets included, is answered like a fault.
#[test]
fn no_kind_of_error_refuses_anybody() {
    use ErrorKind::{Corrupt, Denied, Invalid, Throttled, Unavailable};
    for kind in [Throttled, Unavailable, Denied, Corrupt, Invalid] {
        let receiver = Receiver::new(FaultPlan::none());
        receiver.secrets.fail(kind);
        for secret in ["first", "wrong"] {
            receiver.clock.advance(receiver.limits.secret_cooldown);
            assert_eq!(receiver.status(secret), 503, "{kind:?}");
        }
        receiver.secrets.set(Vec::new());
        receiver.clock.advance(receiver.limits.secret_cooldown);
        assert_eq!(receiver.status("first"), 503, "no secret at all");
    }
}

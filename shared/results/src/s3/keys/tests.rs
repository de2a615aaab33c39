use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use aws_credential_types::provider::future;
use domain::testing::ManualClock;
use domain::time::after;

use super::*;

const HOUR: Duration = Duration::from_hours(1);

/// Gives keys that last an hour, or for ever, or none.
#[derive(Debug)]
struct Source {
    fetched: AtomicUsize,
    lasts: bool,
    fails_from: usize,
    clock: Arc<ManualClock>,
}

impl ProvideCredentials for Source {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        let fetched = self.fetched.fetch_add(1, Ordering::SeqCst);
        let end = between(Timestamp::UNIX_EPOCH, after(self.clock.now(), HOUR));
        let expiry = (!self.lasts).then(|| SystemTime::UNIX_EPOCH + end);
        future::ProvideCredentials::ready(if fetched >= self.fails_from {
            Err(CredentialsError::provider_error("a planted failure"))
        } else {
            Ok(Credentials::new(format!("id-{fetched}"), "marker", None, expiry, "test"))
        })
    }
}

fn keys(lasts: bool, fails_from: usize) -> (Keys, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    let source = Source { fetched: AtomicUsize::new(0), lasts, fails_from, clock: clock.clone() };
    (Keys::new(SharedCredentialsProvider::new(source), clock.clone()), clock)
}

async fn id(keys: &Keys) -> String {
    keys.get_credential().await.unwrap().key_id.clone()
}

/// A function's own keys last as long as its process.
#[tokio::test]
async fn keys_without_an_end_are_fetched_once() {
    let (keys, clock) = keys(true, usize::MAX);
    for _ in 0..3 {
        assert_eq!(id(&keys).await, "id-0");
        clock.advance(1_000 * HOUR);
    }
    assert!(!format!("{keys:?}").contains("marker"));
}

#[tokio::test]
async fn keys_are_fetched_again_before_they_expire() {
    let (keys, clock) = keys(false, usize::MAX);
    assert_eq!(id(&keys).await, "id-0");
    clock.advance(HOUR.saturating_sub(FETCH_BEFORE + Duration::from_secs(1)));
    assert_eq!(id(&keys).await, "id-0");
    clock.advance(Duration::from_secs(1));
    assert_eq!(id(&keys).await, "id-1");
    assert_eq!(id(&keys).await, "id-1");
}

/// Keys that could not be fetched again serve until they expire.
#[tokio::test]
async fn keys_serve_until_they_expire() {
    let (keys, clock) = keys(false, 1);
    assert_eq!(id(&keys).await, "id-0");
    clock.advance(HOUR.saturating_sub(Duration::from_secs(1)));
    assert_eq!(id(&keys).await, "id-0");
    clock.advance(Duration::from_secs(1));
    assert!(matches!(keys.get_credential().await, Err(Error::Generic { .. })));
}

/// What is missing is to be mended; what did not answer will pass.
#[test]
fn the_cause_decides_what_to_do() {
    for error in [CredentialsError::not_loaded("x"), CredentialsError::invalid_configuration("x")] {
        assert!(matches!(unavailable(error), Error::Unauthenticated { .. }));
    }
    for error in [
        CredentialsError::provider_error("x"),
        CredentialsError::provider_timed_out(Duration::from_secs(1)),
    ] {
        assert!(matches!(unavailable(error), Error::Generic { .. }));
    }
}

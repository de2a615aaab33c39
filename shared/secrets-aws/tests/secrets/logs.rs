use std::io;
use std::sync::{Arc, Mutex};

use aws_client::Patience;
use domain::limits::Limits;
use domain::ports::SecretSource as _;
use domain::signature::secret::Stage;
use domain::testing::ManualClock;
use secrets_aws::testing::{FakeSecretsManager, SecretsTrouble};
use secrets_aws::{ApiKeySource, AwsSecrets};
use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;

/// All that is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Reads secrets and key, well, badly and not at all.
async fn flow() {
    let clock = Arc::new(ManualClock::default());
    let fake = FakeSecretsManager::start(clock.clone()).await.unwrap();
    let config = fake.config(Patience::RECEIVER).unwrap();
    let secrets =
        AwsSecrets::new(&config, &["shop".to_owned()], clock, Limits::default().previous_grace);
    let key = ApiKeySource::new(&config, "key");
    fake.put("shop", "marker-signing-secret-1").unwrap();
    fake.put_staged("shop", "{\"marker-signing-secret-2\":1}", &[Stage::Pending]).unwrap();
    fake.put("key", "{\"api_key\":\"marker-api-key\"}").unwrap();
    assert_eq!(secrets.load().await.unwrap().secrets.len(), 1);
    key.load().await.unwrap();
    for trouble in [SecretsTrouble::EXPIRED, SecretsTrouble::INTERNAL, SecretsTrouble::CutAnswer] {
        fake.always(Some(trouble));
        let errors = (secrets.load().await.unwrap_err(), key.load().await.unwrap_err());
        tracing::error!(error = ?errors.0, key = ?errors.1, "told as a receiver tells it");
    }
    fake.always(None);
    fake.hold("shop", "{\"marker-signing-secret-3\":1}");
    let error = secrets.load().await.unwrap_err();
    tracing::error!(?error, "told as a receiver tells it");
}

/// OB-01: at the finest level, the SDK's own lines included, no log shows a value, a credential but
/// for the key's public id, or a signature.
#[test]
fn ob_01_no_log_shows_a_secret() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(Level::TRACE)
        .with_writer(log.clone())
        .with_ansi(false)
        .finish();
    tracing::subscriber::with_default(subscriber, || testkit::run(flow()));
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("told as a receiver tells it"), "{log}");
    assert!(log.contains("cannot be used and counts as absent"), "{log}");
    assert!(log.contains("TRACE") && log.contains("aws_smithy_runtime"), "{log}");
    for marker in ["marker-", "Signature="] {
        assert!(!log.contains(marker), "{marker}: {log}");
    }
}

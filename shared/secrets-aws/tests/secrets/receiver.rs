use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_client::Patience;
use domain::announce::AnnouncePorts;
use domain::envelope::EnvelopeFormat;
use domain::keyring::Keyring;
use domain::limits::Limits;
use domain::ports::Clock;
use domain::receive::{ReceivePorts, Reception, receive};
use domain::signature::preset::Preset;
use domain::signature::secret::{Secret, Stage};
use domain::signature::sign::sign;
use domain::testing::{ManualClock, MemoryLedger, MemoryQueue, SeededRandom};
use domain::time::Timestamp;
use futures_util::future::join_all;
use secrets_aws::AwsSecrets;
use secrets_aws::testing::{FakeSecretsManager, SecretsTrouble};
use tokio::time::Instant;

const BODY: &[u8] = br#"{"job_id":"j1","event_type":"extract_completed","id":"d1"}"#;
const SECOND: Duration = Duration::from_secs(1);

/// Instants that a test moves; deadlines that take their time, since calls do.
#[derive(Default)]
struct MovedClock(ManualClock);

#[async_trait]
impl Clock for MovedClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    async fn sleep(&self, duration: Duration) {
        let _ = tokio::time::timeout(duration, std::future::pending::<()>()).await;
    }
}

struct Scene {
    fake: FakeSecretsManager,
    clock: Arc<MovedClock>,
    keyring: Keyring,
    limits: Limits,
    ledger: MemoryLedger,
    queue: MemoryQueue,
    random: SeededRandom,
    format: EnvelopeFormat,
}

/// A receiver of the secret `shop`, which holds `test-secret-1`.
async fn scene() -> Scene {
    scene_of(&["shop"], Limits::default()).await
}

/// The first of the secrets has a value.
async fn scene_of(ids: &[&str], limits: Limits) -> Scene {
    let clock = Arc::new(MovedClock::default());
    let fake = FakeSecretsManager::start(clock.clone()).await.unwrap();
    fake.put(ids[0], "test-secret-1").unwrap();
    clock.0.advance(Duration::from_hours(24));
    let config = fake.config(Patience::RECEIVER).unwrap();
    let source = AwsSecrets::new(
        &config,
        &ids.iter().map(ToString::to_string).collect::<Vec<_>>(),
        clock.clone(),
        limits.previous_grace,
    );
    let keyring = Keyring::new(Arc::new(source), Preset::Geonode.scheme().unwrap(), &limits);
    let queue = MemoryQueue::new(clock.clone());
    Scene {
        fake,
        clock,
        keyring,
        limits,
        ledger: MemoryLedger::new(),
        queue,
        random: SeededRandom::new(1),
        format: EnvelopeFormat::default(),
    }
}

impl Scene {
    /// A delivery that is signed with this text.
    async fn deliver(&self, text: &str) -> Reception {
        let scheme = Preset::Geonode.scheme().unwrap();
        let secret = Secret::new(text).unwrap();
        let headers = sign(&scheme, &secret, BODY, "d1", self.clock.now()).unwrap();
        let headers: Vec<_> =
            headers.into_iter().map(|(name, value)| (name, value.into_bytes())).collect();
        let ports = ReceivePorts {
            announcing: AnnouncePorts {
                entries: &self.ledger,
                queue: &self.queue,
                clock: &*self.clock,
                random: &self.random,
                limits: &self.limits,
            },
            keyring: &self.keyring,
            format: &self.format,
        };
        receive(ports, &headers, BODY).await
    }

    async fn status(&self, text: &str) -> u16 {
        self.deliver(text).await.status()
    }

    fn calls(&self) -> usize {
        self.fake.seen().len()
    }

    fn advance(&self, duration: Duration) {
        self.clock.0.advance(duration);
    }
}

/// SM-01: somebody types a new value into the console; the first delivery signed with it is
/// accepted.
#[tokio::test]
async fn sm_01_the_first_delivery_signed_with_a_new_secret_is_accepted() {
    let scene = scene().await;
    assert_eq!(scene.status("test-secret-1").await, 202);
    scene.advance(Duration::from_mins(4));
    assert_eq!(scene.status("test-secret-1").await, 202);
    assert_eq!(scene.calls(), 2, "warm deliveries read nothing");
    scene.fake.put("shop", "test-secret-2\n").unwrap();
    let Reception::Accepted { secret, .. } = scene.deliver("test-secret-2").await else {
        panic!("the new secret is refused");
    };
    assert_eq!(secret, "shop:current");
    assert_eq!(scene.calls(), 5, "pending, current, previous");
}

/// SM-02: 200 bad signatures within a second are one load, and 50 at once on a cold start, too.
#[tokio::test]
async fn sm_02_bad_signatures_are_one_load_per_cool_down() {
    let scene = scene().await;
    let cold = join_all((0..50).map(|_| scene.status("forged"))).await;
    assert_eq!(cold, [401; 50]);
    assert_eq!(scene.calls(), 2);
    for round in 1..=3 {
        scene.advance(scene.limits.secret_cooldown);
        for _ in 0..20 {
            let storm = join_all((0..10).map(|_| scene.status("forged"))).await;
            assert_eq!(storm, [401; 10]);
            scene.advance(SECOND / 20);
        }
        assert_eq!(scene.calls(), 2 + 2 * round);
    }
}

/// SM-03: warm, the last good value stays in force for a while; cold, the sender shall come again.
#[tokio::test]
async fn sm_03_while_secrets_manager_is_down_nobody_is_refused() {
    for trouble in [
        SecretsTrouble::THROTTLED,
        SecretsTrouble::INTERNAL,
        SecretsTrouble::EXPIRED,
        SecretsTrouble::Reset,
        SecretsTrouble::Hang,
    ] {
        let limits = Limits { receive_deadline: SECOND / 2, ..Limits::default() };
        let cold = scene_of(&["shop"], limits.clone()).await;
        cold.fake.always(Some(trouble));
        let began = Instant::now();
        assert_eq!(cold.status("test-secret-1").await, 503, "{trouble:?}");
        assert_eq!(cold.status("forged").await, 503, "{trouble:?}");
        assert!(began.elapsed() < 2 * SECOND, "{trouble:?}: {:?}", began.elapsed());
        let (from, reception) = (cold.calls(), cold.deliver("test-secret-1").await);
        assert_eq!((reception.status(), reception.code()), (503, "secrets_unavailable"));
        assert_eq!(cold.calls(), from, "a failed load is not repeated within a second");

        let warm = scene_of(&["shop"], limits).await;
        assert_eq!(warm.status("test-secret-1").await, 202);
        warm.fake.always(Some(trouble));
        warm.advance(Duration::from_mins(59));
        assert_eq!(warm.status("test-secret-1").await, 202, "{trouble:?}");
        assert_eq!(warm.status("forged").await, 503, "{trouble:?}: it may be a new secret's");
        warm.advance(Duration::from_mins(1));
        assert_eq!(warm.status("test-secret-1").await, 503, "{trouble:?}");
        warm.fake.always(None);
        warm.advance(SECOND);
        assert_eq!(warm.status("test-secret-1").await, 202, "{trouble:?}");
    }
}

/// What a cold receiver says of a delivery that it can neither accept nor refuse.
async fn unavailable(scene: &Scene) -> String {
    let reception = scene.deliver("test-secret-1").await;
    assert_eq!(reception.status(), 503);
    format!("{reception:?}")
}

/// SM-03: a cold receiver without a way to Secrets Manager answers within its deadline, and says
/// where nobody answers.
#[tokio::test]
async fn sm_03_silence_names_the_endpoint_within_the_deadline() {
    let scene = scene().await;
    scene.fake.always(Some(SecretsTrouble::Hang));
    let began = Instant::now();
    let text = unavailable(&scene).await;
    assert!(began.elapsed() < 3 * SECOND, "{:?}", began.elapsed());
    assert!(text.contains(scene.fake.endpoint()), "{text}");
    assert!(text.contains("no answer within the time-out"), "{text}");
    assert_eq!(scene.calls(), 2, "a lost attempt leaves time for another one");
}

/// SM-03: a cold receiver tells the operator what is not permitted.
#[tokio::test]
async fn sm_03_the_error_names_the_secret_and_the_call() {
    let scene = scene().await;
    scene.fake.forbid("shop", true);
    let text = unavailable(&scene).await;
    assert!(text.contains("the secret `shop` (AWSCURRENT) cannot be read"), "{text}");
    assert!(text.contains("AWS answered 400 with AccessDeniedException"), "{text}");
    assert!(text.contains("secretsmanager:GetSecretValue on resource: shop"), "{text}");
}

/// SM-05: a rotation whose pending value is late disturbs nobody, and is seen when it is there.
#[tokio::test]
async fn sm_05_a_late_pending_value_is_accepted_when_it_comes() {
    let scene = scene().await;
    assert_eq!(scene.status("test-secret-1").await, 202);
    scene.fake.begin_rotation("shop").unwrap();
    scene.advance(Duration::from_mins(5));
    assert_eq!(scene.status("test-secret-1").await, 202);
    scene.advance(5 * SECOND);
    scene.fake.put_staged("shop", "test-secret-2", &[Stage::Pending]).unwrap();
    scene.advance(5 * SECOND);
    assert_eq!(scene.status("test-secret-2").await, 202);
    assert_eq!(scene.status("test-secret-1").await, 202);
}

/// SM-07: new-signed while the value is pending, old-signed after the change, and after the grace.
#[tokio::test]
async fn sm_07_old_and_new_overlap() {
    let scene = scene().await;
    assert_eq!(scene.status("test-secret-1").await, 202);
    let id = scene.fake.put_staged("shop", "test-secret-2", &[Stage::Pending]).unwrap();
    scene.advance(10 * SECOND);
    assert_eq!(scene.status("test-secret-2").await, 202);
    scene.fake.move_stage("shop", Stage::Current, &id).unwrap();
    scene.advance(30 * SECOND);
    assert_eq!(scene.status("test-secret-1").await, 202);
    scene.advance(Duration::from_mins(5));
    let Reception::Accepted { secret, .. } = scene.deliver("test-secret-1").await else {
        panic!("the previous secret is refused within its grace");
    };
    assert_eq!(secret, "shop:previous");
    scene.advance(Duration::from_mins(15));
    assert_eq!(scene.status("test-secret-1").await, 401);
    assert_eq!(scene.status("test-secret-2").await, 202);
}

/// SG-06, SM-08: a webhook whose secret nobody has typed in yet takes no other with it, also where
/// the receiver starts then; its deliveries are put off and not refused.
#[tokio::test]
async fn sm_08_a_secret_without_a_value_takes_no_other_with_it() {
    for text in [None, Some(" "), Some("{\"other\":\"x\"}")] {
        let scene = scene_of(&["shop", "later"], Limits::default()).await;
        scene.fake.create("later");
        if let Some(text) = text {
            scene.fake.hold("later", text);
        }
        assert_eq!(scene.status("test-secret-1").await, 202, "{text:?}");
        assert_eq!(scene.status("test-secret-2").await, 503, "{text:?}");
        scene.fake.put("later", "test-secret-2").unwrap();
        scene.advance(Duration::from_secs(10));
        assert_eq!(scene.status("test-secret-2").await, 202, "{text:?}");
        assert_eq!(scene.status("forged").await, 401, "{text:?}");
    }
}

/// SG-06: a value that is no secret lets nobody in and refuses nobody.
#[tokio::test]
async fn sg_06_an_empty_secret_is_503_for_everybody() {
    for text in ["", "   ", "{\"secret\":\"\"}"] {
        let scene = scene().await;
        scene.fake.hold("shop", text);
        for signed in ["test-secret-1", "forged"] {
            assert_eq!(scene.status(signed).await, 503, "{text:?}");
            scene.advance(SECOND);
        }
        assert!(scene.ledger.entries().is_empty());
    }
}

/// SM-01: a value that was replaced while every signature matched is out of force, too, when its
/// grace is over and the secrets have grown old.
#[tokio::test]
async fn a_replaced_secret_goes_out_of_force_without_a_mismatch() {
    let scene = scene().await;
    assert_eq!(scene.status("test-secret-1").await, 202);
    scene.fake.put("shop", "test-secret-2").unwrap();
    scene.advance(Duration::from_mins(14));
    assert_eq!(scene.status("test-secret-1").await, 202, "within the grace");
    scene.advance(Duration::from_mins(6));
    assert_eq!(scene.status("test-secret-1").await, 401);
}

/// SM-08: three webhooks, each with its own secret: a delivery of each is accepted under its own, one
/// under another's as well, since all keys are tried, and replacing one touches no other.
#[tokio::test]
async fn sm_08_each_webhook_delivers_under_its_own_secret() {
    let scene = scene_of(&["extract", "batch", "crawl"], Limits::default()).await;
    scene.fake.put("extract", r#"{"secret":"one","webhook_id":"w-1"}"#).unwrap();
    scene.fake.put("batch", r#"{"secret":"two","webhook_id":"w-2"}"#).unwrap();
    scene.fake.put("crawl", "three").unwrap();
    for (text, label) in
        [("one", "extract:current"), ("two", "batch:current"), ("three", "crawl:current")]
    {
        let Reception::Accepted { secret, .. } = scene.deliver(text).await else {
            panic!("{text} is refused");
        };
        assert_eq!(secret, label);
    }
    assert_eq!(scene.status("four").await, 401);
    scene.fake.put("batch", r#"{"secret":"two-b","webhook_id":"w-2"}"#).unwrap();
    scene.advance(Duration::from_mins(15));
    for (text, status) in [("two-b", 202), ("one", 202), ("three", 202), ("two", 401)] {
        assert_eq!(scene.status(text).await, status, "{text}");
    }
}

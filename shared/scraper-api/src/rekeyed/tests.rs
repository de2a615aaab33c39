use domain::request::FetchOptions;
use domain::testing::ManualClock;
use tokio::net::TcpListener;

use super::*;
use crate::config::Config;

const WITHIN: Duration = Duration::from_secs(10);
const COOLDOWN: Duration = Duration::from_secs(10);
/// The key that the platform takes.
const GOOD: &str = "good-key";

/// A place that a test writes to: a key, or what is none.
#[derive(Default)]
struct Place(Mutex<(String, u32)>);

impl Place {
    fn put(&self, text: &str) {
        self.0.lock().unwrap().0 = text.to_owned();
    }

    fn reads(&self) -> u32 {
        self.0.lock().unwrap().1
    }
}

#[async_trait]
impl KeySource for Place {
    async fn load(&self) -> Result<Option<ApiKey>, KeyTrouble> {
        let mut held = self.0.lock().unwrap();
        held.1 += 1;
        Ok(Some(ApiKey::parse(&held.0)?))
    }
}

struct Bench {
    platform: simulator::Running,
    place: Arc<Place>,
    clock: Arc<ManualClock>,
    jobs: Rekeyed,
}

impl Bench {
    /// A platform, and a client with this key.
    async fn new(key: Option<&str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let config = simulator::Config { api_key: GOOD.to_owned(), ..Default::default() };
        let clock = Arc::new(simulator::SystemClock);
        let platform = simulator::start(listener, config, clock).unwrap();
        let key = key.map(|key| ApiKey::parse(key).unwrap());
        let config = Config::new(&platform.base_url(), key).unwrap();
        let clock = Arc::new(ManualClock::default());
        let api = Arc::new(ScraperApi::new(config, clock.clone()).unwrap());
        let place = Arc::new(Place::default());
        let jobs = Rekeyed::new(&api, place.clone(), COOLDOWN, clock.clone());
        Self { platform, place, clock, jobs }
    }

    async fn probe(&self) -> Result<(), Option<u16>> {
        self.jobs.probe(WITHIN).await.map_err(|error| error.status)
    }
}

#[tokio::test]
async fn a_refused_key_is_read_again_once_per_cool_down() {
    let bench = Bench::new(Some("old-key")).await;
    bench.place.put("old-key");
    assert_eq!(bench.probe().await, Err(Some(401)), "the place holds the old key still");
    bench.place.put(GOOD);
    assert_eq!(bench.probe().await, Err(Some(401)), "read a moment ago");
    bench.clock.advance(COOLDOWN);
    assert_eq!(bench.probe().await, Ok(()));
    assert_eq!((bench.probe().await, bench.place.reads()), (Ok(()), 2), "the new key stays");
    bench.platform.stop.stop().await;
}

#[tokio::test]
async fn a_submission_under_a_refused_key_is_made_once() {
    let bench = Bench::new(Some("old-key")).await;
    bench.place.put(GOOD);
    let request = JobRequest::extract("https://example.com/", FetchOptions::default()).unwrap();
    bench.jobs.submit(&request, WITHIN).await.unwrap();
    let books = bench.platform.with_platform(|platform, _| platform.books(simulator::Detail::Jobs));
    assert_eq!(books["jobs"].as_array().unwrap().len(), 1);
    bench.platform.stop.stop().await;
}

#[tokio::test]
async fn a_place_without_a_usable_key_leaves_the_key_as_it_is() {
    let bench = Bench::new(Some("old-key")).await;
    for broken in ["", "two words"] {
        bench.place.put(broken);
        assert_eq!(bench.probe().await, Err(Some(401)), "{broken}");
        bench.clock.advance(COOLDOWN);
    }
    bench.place.put(GOOD);
    assert_eq!(bench.probe().await, Ok(()));
    bench.platform.stop.stop().await;
}

/// Without a key nothing is sent, and the first one that is there is used.
#[tokio::test]
async fn a_key_that_comes_late_is_found() {
    let bench = Bench::new(None).await;
    assert_eq!(bench.probe().await, Err(None));
    bench.clock.advance(COOLDOWN);
    bench.place.put(GOOD);
    assert_eq!(bench.probe().await, Ok(()));
    bench.platform.stop.stop().await;
}

/// What the platform says to a key that it knows and that may not: 403.
#[tokio::test]
async fn a_key_that_may_not_is_read_again_too() {
    let bench = Bench::new(Some(GOOD)).await;
    for (status, is_read) in [(403, true), (402, false)] {
        bench.clock.advance(COOLDOWN);
        let error = ApiError { status: Some(status), ..ApiError::new(ApiErrorKind::Denied, "no") };
        bench.place.put(GOOD);
        assert_eq!(bench.jobs.has_new_key(&error).await, is_read, "{status}");
    }
    bench.platform.stop.stop().await;
}

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use domain::ports::Jobs as _;
use domain::testing::ManualClock;
use scraper_api::Config;
use tempfile::TempDir;
use tokio::net::TcpListener;

use super::*;

const WITHIN: Duration = Duration::from_secs(10);
const COOLDOWN: Duration = Duration::from_secs(10);
/// The key that the platform takes.
const GOOD: &str = "good-key";

struct Bench {
    dir: TempDir,
    platform: simulator::Running,
    clock: Arc<ManualClock>,
    jobs: Rekeyed,
}

fn write_key(dir: &Path, key: &str) {
    let file = dir.join("key");
    std::fs::write(&file, key).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

impl Bench {
    /// A platform, and a client that read a key which is refused.
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let config = simulator::Config { api_key: GOOD.to_owned(), ..Default::default() };
        let clock = Arc::new(simulator::SystemClock);
        let platform = simulator::start(listener, config, clock).unwrap();
        let dir = TempDir::new().unwrap();
        write_key(dir.path(), "old-key");
        let source =
            KeySource { file: Some(dir.path().join("key")), value: None, cooldown: COOLDOWN };
        let clock = Arc::new(ManualClock::default());
        let config = Config::new(&platform.base_url(), source.load().unwrap()).unwrap();
        let api = Arc::new(ScraperApi::new(config, Arc::clone(&clock) as Arc<dyn Clock>).unwrap());
        let jobs = source.rekeyed(&api, Arc::clone(&clock) as Arc<dyn Clock>);
        Self { dir, platform, clock, jobs }
    }

    async fn probe(&self) -> Result<(), Option<u16>> {
        self.jobs.probe(WITHIN).await.map_err(|error| error.status)
    }
}

#[tokio::test]
async fn a_refused_key_is_read_again_from_its_file() {
    let bench = Bench::new().await;
    assert_eq!(bench.probe().await, Err(Some(401)), "the file holds the old key still");
    write_key(bench.dir.path(), GOOD);
    bench.clock.advance(COOLDOWN);
    assert_eq!(bench.probe().await, Ok(()));
    bench.platform.stop.stop().await;
}

/// A value is as it was when the process began: nothing is tried again.
#[tokio::test]
async fn a_value_is_not_read_again() {
    let value = Some(SecretText::new("old-key"));
    let source = KeySource { file: None, value, cooldown: COOLDOWN };
    assert!(scraper_api::KeySource::load(&source).await.unwrap().is_none());
}

#[tokio::test]
async fn a_key_file_that_cannot_be_used_leaves_the_key_as_it_is() {
    let bench = Bench::new().await;
    for broken in ["", "two words"] {
        write_key(bench.dir.path(), broken);
        assert_eq!(bench.probe().await, Err(Some(401)), "{broken}");
        bench.clock.advance(COOLDOWN);
    }
    write_key(bench.dir.path(), GOOD);
    assert_eq!(bench.probe().await, Ok(()));
    bench.platform.stop.stop().await;
}

#[test]
fn a_file_goes_before_a_value_and_no_error_shows_a_key() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("key");
    let source = |file: Option<&Path>, value: Option<&str>| KeySource {
        file: file.map(Path::to_owned),
        value: value.map(SecretText::new),
        cooldown: COOLDOWN,
    };
    write_key(dir.path(), "hush hush");
    for source in [source(Some(&file), Some("good")), source(None, Some("hush hush"))] {
        let error = source.load().unwrap_err();
        assert_eq!(error.exit, Exit::Configuration);
        assert!(!format!("{error:?}{source:?}").contains("hush"), "{error:?}");
    }
    assert_eq!(source(None, None).load().unwrap_err().exit, Exit::Configuration);
    assert!(source(None, Some("good")).load().is_ok());
    assert!(source(Some(dir.path()), None).load().unwrap_err().render().contains("regular file"));
}

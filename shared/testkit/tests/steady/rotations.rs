use std::time::Duration;

use domain::ports::{Clock as _, DeliveryStatus, VersionId, Webhooks as _};
use domain::rotate::{Rotation, Staging, Step, Strategy, rotate};
use domain::tick::{Part, Rules, Term, tick};
use domain::time::after;
use futures_util::future::{join, join4};

use super::site::Site;

const SECOND: Duration = Duration::from_secs(1);
/// How long jobs are submitted, and how long deliveries are handed over.
const SUBMITTED: Duration = Duration::from_mins(1);
const DELIVERED: Duration = Duration::from_mins(8);
const PER_SECOND: u32 = 100;

impl Site {
    fn rotation(&self, strategy: Strategy) -> Rotation {
        let version = VersionId::parse(&"v".repeat(32)).unwrap();
        Rotation { slot: self.slot.clone(), version, strategy, staging: Staging::ByStore }
    }

    /// The steps as Secrets Manager has them taken, each `times` over, one after the other or at
    /// once.
    async fn rotate(&self, strategy: Strategy, times: Times) {
        self.clock.sleep(20 * SECOND).await;
        let rotation = self.rotation(strategy);
        self.vault.announce(&self.slot, &rotation.version);
        for step in Step::ALL {
            let until = || after(self.clock.now(), 2 * 60 * SECOND);
            let taking = || rotate(self.rotating(), &rotation, step, until());
            match times {
                Times::Once => drop(taking().await.unwrap()),
                Times::Twice => {
                    taking().await.unwrap();
                    self.clock.sleep(SECOND).await;
                    taking().await.unwrap();
                }
                Times::AtOnce => {
                    let (one, other) = join(taking(), taking()).await;
                    assert!(one.is_ok() && other.is_ok(), "{step}");
                }
                Times::AfterACrash => {
                    // The process is gone right after its work, before anybody heard of it.
                    taking().await.unwrap();
                    self.clock.sleep(2 * 60 * SECOND).await;
                    taking().await.unwrap();
                }
            }
            self.clock.sleep(SECOND).await;
        }
    }

    async fn tick(&self) {
        let mut first = Part::default();
        let term = Term { until: after(self.clock.now(), 60 * SECOND), claimed_until: None };
        let report = tick(self.ticking(), &Rules::default(), &mut first, term).await.unwrap();
        assert!(report.retired.unwrap().unwrap().troubles.is_empty());
    }

    async fn ticks(&self, lasts: Duration) {
        for _ in 0..lasts.as_secs() / 60 {
            self.clock.sleep(60 * SECOND).await;
            self.tick().await;
        }
    }
}

/// How often a step is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Times {
    Once,
    Twice,
    AtOnce,
    AfterACrash,
}

fn run(site: &Site, strategy: Strategy, times: Times) {
    let lasts = if times == Times::AfterACrash { 3 * DELIVERED } else { DELIVERED };
    let submitted = if times == Times::AfterACrash { 8 * SUBMITTED } else { SUBMITTED };
    let per_second = if times == Times::AfterACrash { PER_SECOND / 5 } else { PER_SECOND };
    let done = site.clock.run(join4(
        join(site.submit(per_second, submitted), site.forge(submitted)),
        site.deliver(submitted + SUBMITTED / 4, lasts),
        site.rotate(strategy, times),
        site.ticks(lasts),
    ));
    done.expect("nobody waits for anything but the clock");
}

/// SM-07, S27: with a second webhook no genuine delivery is refused, at a hundred a second, while
/// strangers keep every receiver busy: whether the steps are taken once, twice, at once, or again
/// after a crash.
#[test]
fn a_second_webhook_costs_no_delivery() {
    for times in [Times::Once, Times::Twice, Times::AtOnce, Times::AfterACrash] {
        let site = Site::new(1, Duration::ZERO);
        run(&site, Strategy::Overlap, times);
        let tally = site.tally.lock().unwrap();
        let accepted: u32 = tally.answers.values().sum();
        assert_eq!(tally.answers.keys().collect::<Vec<_>>(), [&202], "{times:?}: {tally:?}");
        let finished = site.finished();
        assert!(finished.len() > 5_000, "{}", finished.len());
        // Both webhooks told of what ended meanwhile.
        assert!(accepted > u32::try_from(finished.len()).unwrap(), "{times:?}");
        assert_eq!(tally.told, finished, "{times:?}");
        assert_eq!(site.there_are().len(), 1, "{times:?}");
    }
}

/// With a platform that is a tenth of a second away, a delivery of the new webhook may arrive
/// before its secret does; the old one has told of the same job.
#[test]
fn what_arrives_before_its_secret_was_told_by_the_old_webhook() {
    for seed in 1..=2 {
        let site = Site::new(seed, Duration::from_millis(100));
        run(&site, Strategy::Overlap, Times::Once);
        let tally = site.tally.lock().unwrap();
        assert!(tally.refused.len() <= 5, "{:?}", tally.answers);
        assert!(tally.refused.is_subset(&tally.told));
        assert_eq!(tally.told, site.finished());
    }
}

/// SM-07, S27: in place, what was signed before receivers knew of it is refused, stands in the log
/// as failed with 401, and one tick after it is due brings its jobs to the ledger.
#[test]
fn what_is_refused_in_place_is_found_in_the_log() {
    let site = Site::new(1, Duration::from_millis(100));
    let rotating = site.rotate(Strategy::InPlace, Times::Once);
    let lasts = SUBMITTED;
    let all = join4(
        join(site.submit(PER_SECOND, SUBMITTED), site.forge(SUBMITTED)),
        site.deliver(lasts, lasts),
        rotating,
        site.clock.sleep(lasts),
    );
    site.clock.run(all).unwrap();
    let refused = std::mem::take(&mut site.tally.lock().unwrap().refused);
    assert!(!refused.is_empty(), "strangers had every receiver look a moment before");
    assert!(refused.len() < 1_000, "ten seconds at most");

    let webhook = site.there_are().remove(0);
    let mut logged = std::collections::BTreeSet::new();
    for page in 1.. {
        let reading = site.platform.deliveries(&webhook.id, page, 100, SECOND);
        let rows = site.clock.run(reading).unwrap().unwrap().deliveries;
        if rows.is_empty() {
            break;
        }
        let failed = rows
            .into_iter()
            .filter(|row| row.http_status == Some(401) && row.status == DeliveryStatus::Failed);
        logged.extend(failed.filter_map(|row| Some(row.job_id?.as_str().to_owned())));
    }
    assert!(refused.is_subset(&logged));

    // The platform never comes again with any of them. Deliveries that may be on their way are
    // left alone for ten minutes.
    let missing = |site: &Site| site.finished().difference(&site.known()).count();
    assert!(missing(&site) > 0);
    site.clock.run(site.clock.sleep(Duration::from_mins(11))).unwrap();
    site.clock.run(site.tick()).unwrap();
    assert_eq!(missing(&site), 0);
}

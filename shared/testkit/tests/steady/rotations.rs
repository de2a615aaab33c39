use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use domain::ports::{Clock as _, DeliveryStatus, VersionId, Webhooks as _};
use domain::rotate::{Rotation, Staging, Step, Strategy, rotate};
use domain::tick::{Part, Rules, Term, tick};
use domain::time::{after, between};
use futures_util::future::{join, join4, select};

use super::site::Site;

const SECOND: Duration = Duration::from_secs(1);
/// How long deliveries come in before the rotation begins.
const BEFORE: Duration = Duration::from_secs(10);
/// How long jobs are submitted, and how long deliveries are handed over.
const SUBMITTED: Duration = Duration::from_secs(45);
const DELIVERED: Duration = Duration::from_mins(8);
const PER_SECOND: u32 = 100;
/// The same where each step waits for the claim of one that was killed.
const SUBMITTED_KILLED: Duration = Duration::from_mins(3);
const PER_SECOND_KILLED: u32 = 20;
/// Pause between two ticks.
const TICK: Duration = Duration::from_secs(150);
/// When the time of a step is over, and its claim with it.
const STEP_MAX: Duration = Duration::from_secs(20);
/// Distance of the platform: what a call does is done after half of the time that it takes.
const NEAR: Duration = Duration::ZERO;
const FAR: Duration = Duration::from_millis(100);

/// Moments in which a step is killed: before, between and after its calls of the platform.
const KILLED_AT: [Duration; 3] =
    [Duration::from_millis(150), Duration::from_millis(350), Duration::from_millis(650)];

/// How often a step is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Times {
    Once,
    /// One after the other.
    Twice,
    AtOnce,
    /// Again, because the process crashed right after its work, before anybody heard of it.
    AfterACrash,
    /// Again, because the process was killed so long after it began, and its claim outlives it.
    Killed(Duration),
}

impl Times {
    fn submitted(self) -> Duration {
        if matches!(self, Self::Killed(_)) { SUBMITTED_KILLED } else { SUBMITTED }
    }

    fn per_second(self) -> u32 {
        if matches!(self, Self::Killed(_)) { PER_SECOND_KILLED } else { PER_SECOND }
    }
}

impl Site {
    fn rotation(&self, strategy: Strategy) -> Rotation {
        let version = VersionId::parse(&"v".repeat(32)).unwrap();
        Rotation { slot: self.slot.clone(), version, strategy, staging: Staging::ByStore }
    }

    /// The steps as Secrets Manager has them taken.
    async fn rotate(&self, strategy: Strategy, times: Times) {
        self.clock.sleep(BEFORE).await;
        let rotation = self.rotation(strategy);
        self.vault.announce(&self.slot, &rotation.version);
        for step in Step::ALL {
            let until = || after(self.clock.now(), STEP_MAX);
            let taking = || rotate(self.rotating(), &rotation, step, until());
            match times {
                Times::Once => drop(taking().await.unwrap()),
                Times::Twice | Times::AfterACrash => {
                    taking().await.unwrap();
                    let pause = if times == Times::Twice { SECOND } else { 4 * SECOND };
                    self.clock.sleep(pause).await;
                    taking().await.unwrap();
                }
                Times::AtOnce => {
                    let (one, other) = join(taking(), taking()).await;
                    assert!(one.is_ok() && other.is_ok(), "{step}");
                }
                Times::Killed(at) => {
                    drop(select(pin!(taking()), pin!(self.clock.sleep(at))).await);
                    self.clock.sleep(STEP_MAX + SECOND).await;
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
        for _ in 0..lasts.as_secs() / TICK.as_secs() {
            self.clock.sleep(TICK).await;
            self.tick().await;
        }
    }
}

/// A rotation while jobs are submitted, delivered and forged, with the ticks that take the old
/// webhook away.
fn overlapping(seed: u64, latency: Duration, times: Times) -> Site {
    let site = Site::new(seed, latency);
    let submitted = times.submitted();
    let lasts = submitted + DELIVERED;
    let done = site.clock.run(join4(
        join(site.submit(times.per_second(), submitted), site.forge(submitted)),
        site.deliver(submitted + SUBMITTED / 4, lasts),
        site.rotate(Strategy::Overlap, times),
        site.ticks(lasts),
    ));
    done.expect("nobody waits for anything but the clock");
    site
}

/// No genuine delivery is refused, every job is told of, and one webhook is left.
fn costs_no_delivery(times: Times) {
    let site = overlapping(1, NEAR, times);
    let tally = site.tally.lock().unwrap();
    let accepted: u32 = tally.answers.values().sum();
    assert_eq!(tally.answers.keys().collect::<Vec<_>>(), [&202], "{tally:?}");
    let finished = site.finished();
    assert!(finished.len() > 4_000, "{}", finished.len());
    // Both webhooks told of what ended meanwhile.
    assert!(accepted > u32::try_from(finished.len()).unwrap(), "{accepted}");
    assert_eq!(tally.told, finished);
    assert_eq!(site.there_are().len(), 1);
}

/// SM-07, S27: with a second webhook no genuine delivery is refused, at a hundred a second, while
/// strangers keep every receiver busy.
#[test]
fn a_second_webhook_costs_no_delivery() {
    costs_no_delivery(Times::Once);
}

#[test]
fn a_second_webhook_costs_no_delivery_when_each_step_comes_twice() {
    costs_no_delivery(Times::Twice);
}

#[test]
fn a_second_webhook_costs_no_delivery_when_each_step_comes_twice_at_once() {
    costs_no_delivery(Times::AtOnce);
}

#[test]
fn a_second_webhook_costs_no_delivery_when_each_step_crashes_after_its_work() {
    costs_no_delivery(Times::AfterACrash);
}

/// With a platform that is a tenth of a second away, a delivery of the new webhook may arrive
/// before its secret does; the old one has told of the same job.
#[test]
fn what_arrives_before_its_secret_was_told_by_the_old_webhook() {
    for seed in 1..=2 {
        let site = overlapping(seed, FAR, Times::Once);
        let tally = site.tally.lock().unwrap();
        assert!(tally.refused.len() <= 5, "{:?}", tally.answers);
        assert!(tally.refused.is_subset(&tally.told));
        assert_eq!(tally.told, site.finished());
    }
}

/// Wherever a step is killed, also between a new webhook and the keeping of its secret, the old one
/// tells of every job, and one webhook is left when the orphans may be taken away.
#[test]
fn a_step_that_is_killed_in_the_middle_costs_no_job() {
    for at in KILLED_AT {
        let site = overlapping(1, FAR, Times::Killed(at));
        {
            let tally = site.tally.lock().unwrap();
            assert!(tally.refused.is_subset(&tally.told), "{at:?}: {:?}", tally.answers);
            assert_eq!(tally.told, site.finished(), "{at:?}");
        }
        site.clock.run(site.ticks(Duration::from_mins(30))).unwrap();
        assert_eq!(site.there_are().len(), 1, "{at:?}");
        assert!(site.there_are()[0].is_active, "{at:?}");
    }
}

/// A rotation in place while jobs are submitted, delivered and forged; the jobs of which a delivery
/// was refused.
fn in_place(times: Times) -> (Site, BTreeSet<String>) {
    let site = Site::new(1, FAR);
    let submitted = times.submitted();
    let all = join4(
        join(site.submit(times.per_second(), submitted), site.forge(submitted)),
        site.deliver(submitted, submitted),
        site.rotate(Strategy::InPlace, times),
        site.clock.sleep(submitted),
    );
    site.clock.run(all).unwrap();
    let refused = std::mem::take(&mut site.tally.lock().unwrap().refused);
    (site, refused)
}

/// The jobs whose delivery the platform's log calls failed with 401.
fn logged(site: &Site) -> BTreeSet<String> {
    let webhook = site.there_are().remove(0);
    let mut logged = BTreeSet::new();
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
    logged
}

/// The platform never comes again with any of what it was refused, and one tick brings all of it to
/// the ledger. Deliveries that may be on their way are left alone for ten minutes.
fn one_tick_finds_all(site: &Site, refused: &BTreeSet<String>) {
    assert!(refused.is_subset(&logged(site)));
    let missing = || site.finished().difference(&site.known()).count();
    assert!(missing() > 0);
    site.clock.run(site.clock.sleep(Duration::from_mins(11))).unwrap();
    site.clock.run(site.tick()).unwrap();
    assert_eq!(missing(), 0);
}

fn is_found_in_the_log(times: Times) {
    let (site, refused) = in_place(times);
    assert!(!refused.is_empty(), "strangers had every receiver look a moment before");
    assert!(refused.len() < 1_000, "ten seconds at most");
    one_tick_finds_all(&site, &refused);
}

/// SM-07, S27: in place, what was signed before receivers knew of it is refused, stands in the log
/// as failed with 401, and one tick after it is due brings its jobs to the ledger.
#[test]
fn what_is_refused_in_place_is_found_in_the_log() {
    is_found_in_the_log(Times::Once);
}

#[test]
fn what_is_refused_in_place_is_found_when_each_step_comes_twice() {
    is_found_in_the_log(Times::Twice);
}

#[test]
fn what_is_refused_in_place_is_found_when_each_step_comes_twice_at_once() {
    is_found_in_the_log(Times::AtOnce);
}

#[test]
fn what_is_refused_in_place_is_found_when_each_step_crashes_after_its_work() {
    is_found_in_the_log(Times::AfterACrash);
}

/// A secret that the platform showed to a process that was killed is replaced by the next try; what
/// was signed with it is refused until then, and found.
#[test]
fn what_is_refused_in_place_is_found_when_a_step_is_killed_in_the_middle() {
    for at in KILLED_AT {
        let (site, refused) = in_place(Times::Killed(at));
        assert!(!refused.is_empty(), "{at:?}");
        // The last secret is in force: nothing was refused in the last minute.
        let last = site.tally.lock().unwrap().refused_at.unwrap();
        assert!(between(last, site.clock.now()) > 60 * SECOND, "{at:?}: {last}");
        one_tick_finds_all(&site, &refused);
    }
}

//! Secrets that cannot be read while the function starts.

use secrets_aws::testing::SecretsTrouble;

use super::site::{Site, delivery, documents};

/// Deliveries until the secrets must have been read: a second of them, and some.
const DELIVERIES_MAX: u64 = 200_000;

/// SM-03: the function starts all the same, names the endpoint, answers 503, accepts nothing, and
/// reads the secrets again by itself once a second, however many deliveries come.
#[test]
fn an_outage_of_the_secrets_at_the_start_ends_without_another_start() {
    testkit::run(async {
        let site = Site::new().await;
        let outage = SecretsTrouble::Refuse { status: 500, code: "InternalServiceError" };
        site.secrets.always(Some(outage));
        let mut process = site.start();
        assert_eq!(site.status(&delivery("early")).await, 503);
        assert_eq!((site.table.keys(), site.sent()), (Vec::new(), Vec::new()));
        site.secrets.always(None);
        let tried = site.secrets.seen().len();
        let mut refused = 1;
        while site.status(&delivery("late")).await == 503 {
            refused += 1;
            assert!(refused < DELIVERIES_MAX, "the secrets are never read again");
        }
        // One version of each stage that may be in force.
        assert!(site.secrets.seen().len() - tried <= 3, "{:?}", site.secrets.seen());
        assert_eq!(
            (site.table.keys(), site.sent()),
            (vec!["job#late".into()], vec!["late".into()])
        );
        assert!(process.is_alive());
        let written = process.end();
        let documents = documents(&written);
        let of = |name: &str| documents.iter().filter_map(|it| it[name].as_u64()).sum::<u64>();
        assert_eq!((of("deliveries_unavailable"), of("deliveries_accepted")), (refused, 1));
        assert_eq!(of("starts"), 1);
        let warned: Vec<_> = written.iter().filter(|it| it.contains("not ready yet")).collect();
        assert!(warned.len() == 1 && warned[0].contains(site.secrets.endpoint()), "{warned:?}");
    });
}

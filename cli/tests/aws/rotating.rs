//! Subscriptions of a stack, and rotations that Secrets Manager begins.

use crate::bench::quick;
use crate::world::{BATCH, EXTRACT, World};

const ENSURE: [&str; 3] = ["webhooks", "ensure", "--json"];

fn outcomes(ran: &crate::bench::Ran, name: &str, field: &str) -> Vec<String> {
    let rows = ran.of_type(name).into_iter();
    rows.map(|row| row[field].as_str().unwrap_or("-").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn ensuring_fills_the_stacks_secrets() {
    let world = World::new(quick()).await;
    let dry = world.run(&[&ENSURE[..], &["--dry-run"]].concat()).await.expect(0);
    assert_eq!(outcomes(&dry, "webhook_plan", "action"), ["create"; 3]);
    let made = world.run(&ENSURE).await.expect(0);
    assert_eq!(outcomes(&made, "webhook", "outcome"), ["created"; 3]);
    let again = world.run(&ENSURE).await.expect(0);
    assert_eq!(outcomes(&again, "webhook", "outcome"), ["kept"; 3]);
    let puts = world.secrets.seen().into_iter().filter(|call| call.starts_with("Put"));
    assert_eq!(puts.count(), 3);
}

/// SM-10: Secrets Manager begins a rotation where one is configured, and none beside another.
#[tokio::test(flavor = "multi_thread")]
async fn secrets_manager_begins_rotations() {
    let world = World::new(quick()).await;
    world.run(&ENSURE).await.expect(0);
    let extract = ["rotate", "--json", "--event", "extract"];
    let ran = world.run(&extract).await.expect(78);
    assert!(ran.err.contains("set the stack's parameter RotationDays"), "{}", ran.err);
    world.secrets.let_rotate(EXTRACT, true);
    let begun = world.run(&extract).await.expect(0);
    assert_eq!(outcomes(&begun, "rotation", "outcome"), ["begun"]);
    assert_eq!(outcomes(&begun, "rotation", "event"), ["extract_completed"]);
    let pending = |name: &str| {
        let labels = world.secrets.labels(name).into_values().flatten();
        labels.filter(|label| label == "AWSPENDING").count()
    };
    assert_eq!((pending(EXTRACT), pending(BATCH)), (1, 0));
    let ran = world.run(&extract).await.expect(75);
    assert!(ran.err.contains("a rotation of") && ran.err.contains("is under way"), "{}", ran.err);
    // Of all, those that can be begun are.
    world.secrets.let_rotate(BATCH, true);
    let ran = world.run(&["rotate", "--json"]).await;
    assert_eq!(outcomes(&ran, "rotation", "event"), ["batch_completed"]);
    let refused = world.run(&["rotate", "--strategy", "in-place"]).await.expect(64);
    assert!(refused.err.contains("set the parameter `RotationStrategy`"), "{}", refused.err);
}

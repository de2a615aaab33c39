//! The account's API key: in the stack's secret, unless it is set.

use domain::signature::secret::Stage;

use crate::bench::{KEY, ended, quick};
use crate::world::{KEY_SECRET, World};

/// A page at once, which needs the key and nothing else.
const EXTRACT: [&str; 2] = ["extract", "https://example.com/a"];

fn reads(world: &World) -> usize {
    world.secrets.seen().iter().filter(|call| call.contains(KEY_SECRET)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_set_goes_before_the_secret() {
    let world = World::new(quick()).await;
    world.run(&EXTRACT).await.expect(0);
    assert_eq!(reads(&world), 1);
    let mut command = world.command(&EXTRACT);
    command.env("GLEANER_API_KEY", KEY);
    ended(command.spawn().unwrap()).await.expect(0);
    assert_eq!(reads(&world), 1);
    let mut command = world.command(&EXTRACT);
    command.env("GLEANER_API_KEY", "another");
    let ran = ended(command.spawn().unwrap()).await.expect(77);
    assert!(ran.err.contains("check the API key in GLEANER_API_KEY"), "{}", ran.err);
}

/// SM-01: a key that changes while a verb runs is read again when the old one is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_key_is_read_again() {
    let world = World::new(quick()).await;
    world.secrets.put(KEY_SECRET, "old-key").unwrap();
    let new = world.secrets.put_staged(KEY_SECRET, KEY, &[Stage::Pending]).unwrap();
    // The first read comes before the change, the second one after it.
    world.secrets.promote_after(1, KEY_SECRET, &new);
    let ran = world.run(&["submit", "https://example.com/a"]).await.expect(0);
    assert_eq!((reads(&world), world.jobs().len()), (2, 1), "{ran:?}");
}

/// A key that is not there, cannot be read or is none is told with where it belongs.
#[tokio::test(flavor = "multi_thread")]
async fn trouble_with_the_key_is_told_with_its_place() {
    let world = World::new(quick()).await;
    world.secrets.put(KEY_SECRET, "wrong-key").unwrap();
    let ran = world.run(&EXTRACT).await.expect(77);
    let place = "check the API key in the secret of AWS Secrets Manager that the stack's output";
    assert!(ran.err.contains(place), "{}", ran.err);
    let mut command = world.command(&EXTRACT);
    command.env("GLEANER_API_KEY_SECRET_ID", KEY_SECRET);
    let ran = ended(command.spawn().unwrap()).await.expect(77);
    let place = format!("check the API key in the secret `{KEY_SECRET}`");
    assert!(ran.err.contains(&place), "{}", ran.err);
    world.secrets.put(KEY_SECRET, "{\"other\":\"wrong-key\"}").unwrap();
    let ran = world.run(&EXTRACT).await.expect(65);
    assert!(ran.err.contains("the stored API key is ambiguous"), "{}", ran.err);
    world.secrets.forbid(KEY_SECRET, true);
    let ran = world.run(&EXTRACT).await.expect(77);
    assert!(ran.err.contains("need secretsmanager:GetSecretValue on the secret"), "{}", ran.err);
    world.secrets.forbid(KEY_SECRET, false);
    world.secrets.create(KEY_SECRET);
    let ran = world.run(&EXTRACT).await.expect(78);
    assert!(ran.err.contains("put the API key into the secret"), "{}", ran.err);
    world.secrets.forget(Some(KEY_SECRET));
    world.run(&EXTRACT).await.expect(78);
    assert!(!ran.err.contains("wrong-key"));
    // Verbs that ask the platform for nothing need none.
    world.run(&["jobs"]).await.expect(0);
}

//! What was given up on a deployed stack, letters of the dead-letter queue among it.

use domain::job::{JobId, JobKey, Kind};
use domain::task::Task;
use queue_sqs::testing::SqsTrouble;
use simulator::{Config, Faults};

use crate::bench::{ended, quick};
use crate::world::{World, ids};

const POLL: [&str; 5] = ["poll", "--base", "10ms", "--cap", "200ms"];
/// A message that is no task, with something that may be a secret.
const STRANGE: &str = r#"{"hello":"marker-7"}"#;

fn task(id: &str) -> String {
    Task { key: JobKey::new(Kind::Extract, JobId::parse(id).unwrap()) }.encode()
}

/// A stack with two jobs that failed for good, whose letters are one's task and a stranger's.
async fn two_dead() -> (World, Vec<String>) {
    let mut faults = Faults::none();
    faults.jobs.fail_final = 1.0;
    let world = World::new(Config { faults, ..quick() }).await;
    let urls = ["submit", "https://example.com/a", "https://example.com/b", "--json"];
    let ran = world.run(&urls).await.expect(0);
    world.run(&POLL).await.expect(2);
    let ids = ids(&ran, "submission");
    world.queue.put_dead_letter(&task(&ids[0]));
    world.queue.put_dead_letter(STRANGE);
    (world, ids)
}

/// WK-08, DQ-10: the same verbs show, try again and discard the ledger's dead and the letters; what
/// is no task does not go round, and a look changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn entries_and_letters_have_the_same_verbs() {
    let (world, dead) = two_dead().await;
    let bodies = world.queue.dead_letters();
    for _ in 0..2 {
        let listed = world.run(&["dead", "list", "--json"]).await.expect(0);
        assert_eq!(listed.of_type("dead_job").len(), 2);
        let letters = listed.of_type("letter");
        assert_eq!(
            (&letters[0]["job_id"], &letters[1]["job_id"]),
            (&dead[0].as_str().into(), &serde_json::Value::Null)
        );
        assert!(letters[0]["sent_at"].is_string() && letters[1].get("excerpt").is_none());
    }
    assert_eq!(world.queue.dead_letters(), bodies);
    let listed = world.run(&["dead", "list", "--reason", "letter"]).await.expect(0).out;
    assert_eq!(listed.lines().count(), 2);
    assert!(listed.contains("no task, 20 bytes") && !listed.contains("marker"), "{listed}");
    let listed = world.run(&["dead", "list", "--reason", "letter", "--json"]).await.expect(0);
    let strange = listed.of_type("letter")[1]["letter_id"].as_str().unwrap().to_owned();
    let strange = format!("letter:{strange}");
    let shown = world.run(&["dead", "show", &strange]).await.expect(0).out;
    assert!(shown.contains(r#"{\"hello\":\"marker-7\"}"#), "{shown}");

    let dry = world.run(&["dead", "redrive", "--all", "--dry-run", "--json"]).await.expect(64);
    let planned = serde_json::json!({ "planned": 3, "no_task": 1 });
    assert_eq!(dry.of_type("summary")[0]["outcomes"], planned);
    assert_eq!((world.queue.bodies().len(), world.queue.dead_letters().len()), (0, 2));
    let ran = world.run(&["dead", "redrive", "--all", "--json"]).await.expect(64);
    let done = serde_json::json!({ "redriven": 2, "sent_back": 1, "no_task": 1 });
    assert_eq!(ran.of_type("summary")[0]["outcomes"], done);
    assert_eq!(world.queue.dead_letters(), [STRANGE]);
    assert_eq!(world.queue.bodies().iter().filter(|body| **body == task(&dead[0])).count(), 2);
    world.run(&POLL).await.expect(2);
    let listed = world.run(&["dead", "list", "--json"]).await.expect(0);
    assert_eq!(listed.of_type("dead_job").len(), 2, "given up again");

    let ran = world.run(&["dead", "discard", &strange, &dead[0], "--json"]).await.expect(0);
    let done = serde_json::json!({ "discarded": 1, "removed": 1 });
    assert_eq!(ran.of_type("summary")[0]["outcomes"], done);
    assert_eq!(world.queue.dead_letters(), Vec::<String>::new());
    world.run(&["dead", "show", &strange]).await.expect(4);
    let listed = world.run(&["dead", "list", "--json"]).await.expect(0);
    assert_eq!(ids(&listed, "dead_job"), [dead[1].clone()]);
}

/// What SQS refuses is told with the right that is missing, and what was done before is told.
#[tokio::test(flavor = "multi_thread")]
async fn trouble_with_letters_is_told() {
    let (world, dead) = two_dead().await;
    world.queue.plan([SqsTrouble::Refuse { status: 403, code: "AccessDenied" }]);
    let ran = world.run(&["dead", "list", "--reason", "letter"]).await.expect(77);
    assert!(ran.err.contains("sqs:ReceiveMessage on the dead-letter queue"), "{}", ran.err);
    let mut command = world.command(&["dead", "list"]);
    command.env("GLEANER_DEAD_LETTER_QUEUE_URL", "https://sqs.eu-central-1.amazonaws.com/1/other");
    let ran = ended(command.spawn().unwrap()).await.expect(78);
    assert!(ran.out.contains(&dead[0]), "{}", ran.out);
    assert!(ran.err.contains("(setting `dead_letter_queue_url`) is not there"), "{}", ran.err);
}

/// Without its URL the ledger's dead are shown all the same.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_dead_letter_queue_is_no_obstacle() {
    let (world, dead) = two_dead().await;
    let mut command = world.command(&["dead", "list"]);
    command.env_remove("GLEANER_STACK");
    command.envs([
        ("GLEANER_TABLE", world.table.as_str()),
        ("GLEANER_QUEUE_URL", world.queue.queue_url()),
        ("GLEANER_BUCKET", "gleaner-results"),
    ]);
    let ran = ended(command.spawn().unwrap()).await.expect(0);
    assert!(dead.iter().all(|id| ran.out.contains(id)), "{}", ran.out);
    assert!(ran.err.contains("the dead-letter queue is not known"), "{}", ran.err);
}

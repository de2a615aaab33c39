//! Region and credentials, or what to do without them.

use tokio::process::Command;

use crate::bench::{Ran, ended, quick};
use crate::world::World;

async fn run(mut command: Command) -> Ran {
    ended(command.spawn().unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_region_nothing_is_asked() {
    let world = World::new(quick()).await;
    let mut command = world.command(&["jobs"]);
    command.env_remove("AWS_REGION");
    let ran = run(command).await.expect(78);
    assert!(ran.err.contains("there is no AWS region"), "{}", ran.err);
    assert!(ran.err.contains("give --region, set AWS_REGION or GLEANER_REGION"), "{}", ran.err);
    let mut command = world.command(&["jobs"]);
    command.env_remove("AWS_REGION").env("GLEANER_REGION", "eu-central-1");
    run(command).await.expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_credentials_nothing_is_asked() {
    let world = World::new(quick()).await;
    let mut command = world.command(&["jobs"]);
    command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
    let ran = run(command).await.expect(78);
    assert!(ran.err.contains("there are no AWS credentials"), "{}", ran.err);
    assert!(ran.err.contains("sign in with `aws sso login`"), "{}", ran.err);
    assert_eq!(world.stacks.calls().len(), 0);
}

/// A profile of a person's machine gives both; its program is asked once for all services.
#[tokio::test(flavor = "multi_thread")]
async fn a_profile_gives_region_and_credentials() {
    let world = World::new(quick()).await;
    let variables = world.variables();
    let answer = serde_json::json!({
        "Version": 1,
        "AccessKeyId": variables["AWS_ACCESS_KEY_ID"],
        "SecretAccessKey": variables["AWS_SECRET_ACCESS_KEY"],
        "SessionToken": variables["AWS_SESSION_TOKEN"],
        "Expiration": "2099-01-01T00:00:00Z",
    });
    world.folder.write("answer.json", answer.to_string());
    let folder = world.folder.path().display().to_string();
    let program = format!("sh -c 'echo asked >> {folder}/asked; cat {folder}/answer.json'");
    std::fs::create_dir(world.folder.path().join(".aws")).unwrap();
    let profile =
        format!("[profile work]\nregion = eu-central-1\ncredential_process = {program}\n");
    world.folder.write(".aws/config", profile);
    let with_profile = |args: &[&str]| {
        let mut command = world.command(args);
        for name in
            ["AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"]
        {
            command.env_remove(name);
        }
        command.env("HOME", &folder).env("AWS_PROFILE", "work").env("PATH", "/usr/bin:/bin");
        command
    };
    run(with_profile(&["submit", "https://example.com/a"])).await.expect(0);
    run(with_profile(&["poll", "--base", "10ms", "--cap", "200ms"])).await.expect(0);
    let asked = std::fs::read_to_string(world.folder.path().join("asked")).unwrap();
    assert_eq!(asked.lines().count(), 2, "once for each run");
    // A program that fails is named, and what it printed is not shown.
    let marker = crate::markers::SECRET;
    for program in [
        format!("sh -c 'echo {marker}'"),
        format!("sh -c 'echo {{\\\"Version\\\": 1, \\\"SecretAccessKey\\\": \\\"{marker}\\\"}}'"),
        "no-such-program".to_owned(),
    ] {
        world.folder.write(
            ".aws/config",
            format!("[profile work]\nregion = eu-central-1\ncredential_process = {program}\n"),
        );
        let ran = run(with_profile(&["jobs", "--log", "trace"])).await.expect(78);
        assert!(ran.err.contains("the AWS credentials cannot be had"), "{}", ran.err);
        assert!(ran.err.contains("`aws sts get-caller-identity` shows the same"), "{}", ran.err);
        assert!(!ran.err.contains(marker), "{}", ran.err);
    }
}

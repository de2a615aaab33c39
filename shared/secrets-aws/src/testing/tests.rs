use std::time::Duration;

use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_secretsmanager::operation::get_secret_value::GetSecretValueOutput;
use aws_sdk_secretsmanager::primitives::Blob;
use domain::testing::ManualClock;

use super::*;

struct Scene {
    fake: FakeSecretsManager,
    clock: Arc<ManualClock>,
    client: Client,
}

async fn scene() -> Scene {
    let clock = Arc::new(ManualClock::default());
    let fake = FakeSecretsManager::start(clock.clone()).await.unwrap();
    let once = Patience { attempts: 1, ..Patience::RECEIVER };
    let client = Client::new(&fake.config(once).unwrap());
    Scene { fake, clock, client }
}

impl Scene {
    async fn get(&self, stage: &str) -> Result<GetSecretValueOutput, String> {
        told(self.client.get_secret_value().secret_id("shop").version_stage(stage).send().await)
    }

    async fn text(&self, stage: Stage) -> Option<String> {
        self.get(label(stage)).await.ok().and_then(|output| output.secret_string)
    }
}

/// What came, or the error's code.
fn told<T, E: ProvideErrorMetadata, R>(answer: Result<T, SdkError<E, R>>) -> Result<T, String> {
    answer.map_err(|error| error.code().unwrap_or("no code").to_owned())
}

fn code<T, E: ProvideErrorMetadata, R>(answer: Result<T, SdkError<E, R>>) -> String {
    told(answer).err().unwrap_or_else(|| "no error".to_owned())
}

#[tokio::test]
async fn a_value_comes_with_its_version() {
    let scene = scene().await;
    let arn = scene.fake.create("shop");
    let id = scene.fake.put("shop", "first").unwrap();
    for name in ["shop", &arn] {
        let output = scene.client.get_secret_value().secret_id(name).send().await.unwrap();
        assert_eq!((output.name(), output.arn()), (Some("shop"), Some(arn.as_str())));
        assert_eq!(output.version_id(), Some(id.as_str()));
        assert_eq!(output.version_stages(), ["AWSCURRENT"]);
        assert_eq!((output.secret_string(), output.secret_binary()), (Some("first"), None));
        assert_eq!(output.created_date().unwrap().secs(), scene.clock.now().as_second());
    }
    scene.fake.put("shop", [0_u8, 255].as_slice()).unwrap();
    let output = scene.get("AWSCURRENT").await.unwrap();
    assert_eq!(output.secret_binary().map(AsRef::as_ref), Some([0_u8, 255].as_slice()));
    assert_eq!(output.secret_string(), None);
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let scene = scene().await;
    assert_eq!(scene.get("AWSCURRENT").await.unwrap_err(), "ResourceNotFoundException");
    scene.fake.create("shop");
    assert_eq!(scene.get("AWSCURRENT").await.unwrap_err(), "ResourceNotFoundException");
    let id = scene.fake.put("shop", "first").unwrap();
    for stage in ["AWSPENDING", "AWSPREVIOUS", "current"] {
        assert_eq!(scene.get(stage).await.unwrap_err(), "ResourceNotFoundException", "{stage}");
    }
    scene.fake.begin_rotation("shop").unwrap();
    assert_eq!(scene.get("AWSPENDING").await.unwrap_err(), "ResourceNotFoundException");
    let call = |id: &str| scene.client.get_secret_value().secret_id("shop").version_id(id);
    assert!(call(&id).version_stage("AWSCURRENT").send().await.is_ok());
    let other = code(call(&id).version_stage("AWSPENDING").send().await);
    assert_eq!(other, "InvalidRequestException");
    assert_eq!(code(call(&"0".repeat(36)).send().await), "ResourceNotFoundException");
    assert_eq!(code(call("short").send().await), "ValidationException");
}

/// DQ-11: the fake gives no more than Secrets Manager does.
#[tokio::test]
async fn what_may_not_be_read_is_refused() {
    let scene = scene().await;
    let id = scene.fake.put("shop", "first").unwrap();
    scene.fake.break_key("shop", &id);
    assert_eq!(scene.get("AWSCURRENT").await.unwrap_err(), "DecryptionFailure");
    scene.fake.forbid("shop", true);
    assert_eq!(scene.get("AWSCURRENT").await.unwrap_err(), "AccessDeniedException");
    scene.fake.forbid("shop", false);
    scene.fake.delete("shop");
    assert_eq!(scene.get("AWSCURRENT").await.unwrap_err(), "InvalidRequestException");
    let put = scene.client.put_secret_value().secret_id("shop").secret_string("second");
    assert_eq!(code(put.send().await), "InvalidRequestException");
}

/// A new current value makes the old one previous, and the one before that has no stage.
#[tokio::test]
async fn stages_move_as_values_are_put() {
    let scene = scene().await;
    let stages = [Stage::Current, Stage::Pending, Stage::Previous];
    let told = async || {
        let mut texts = Vec::new();
        for stage in stages {
            texts.push(scene.text(stage).await.unwrap_or_default());
        }
        texts
    };
    scene.fake.create("shop");
    let put = |text: &str| scene.client.put_secret_value().secret_id("shop").secret_string(text);
    put("first").send().await.unwrap();
    put("second").send().await.unwrap();
    assert_eq!(told().await, ["second", "", "first"]);
    let pending = put("third").version_stages("AWSPENDING").send().await.unwrap();
    assert_eq!(told().await, ["second", "third", "first"]);

    let to = pending.version_id().unwrap();
    let call =
        || scene.client.update_secret_version_stage().secret_id("shop").version_stage("AWSCURRENT");
    assert_eq!(code(call().move_to_version_id(to).send().await), "InvalidParameterException");
    let current = scene.get("AWSCURRENT").await.unwrap().version_id.unwrap();
    let removed = call().remove_from_version_id(&current).send().await;
    assert_eq!(code(removed), "InvalidParameterException");
    call().move_to_version_id(to).remove_from_version_id(&current).send().await.unwrap();
    // As AWS does, the label of the rotation stays until somebody removes it.
    assert_eq!(told().await, ["third", "third", "second"]);
    scene.fake.move_stage("shop", Stage::Current, &current).unwrap();
    assert_eq!(told().await, ["second", "third", "third"]);
}

#[tokio::test]
async fn a_repeated_put_does_nothing_and_another_value_is_refused() {
    let scene = scene().await;
    scene.fake.create("shop");
    let token = "t".repeat(32);
    let put = |text: &str| {
        let call = scene.client.put_secret_value().secret_id("shop").secret_string(text);
        call.client_request_token(&token)
    };
    put("first").send().await.unwrap();
    scene.fake.put("shop", "second").unwrap();
    put("first").send().await.unwrap();
    assert_eq!(scene.text(Stage::Current).await.as_deref(), Some("second"));
    assert_eq!(code(put("third").send().await), "ResourceExistsException");
    let both = put("first").secret_binary(Blob::new("first")).send().await;
    assert_eq!(code(both), "InvalidParameterException");
    assert_eq!(code(put("").send().await), "ValidationException");
    let long = "s".repeat(65_537);
    assert_eq!(code(put(&long).send().await), "ValidationException");
    assert!(scene.fake.put("shop", "").is_err());
}

/// A rotation begins where one is configured and none is under way; the versions that have labels
/// are told.
#[tokio::test]
async fn a_rotation_begins_with_a_label() {
    let scene = scene().await;
    scene.fake.create("shop");
    let current = scene.fake.put("shop", "first").unwrap();
    let rotate = |token: &str| {
        scene.client.rotate_secret().secret_id("shop").client_request_token(token.repeat(32)).send()
    };
    let describe = || scene.client.describe_secret().secret_id("shop").send();
    assert_eq!(code(rotate("a").await), "InvalidRequestException");
    assert_eq!(describe().await.unwrap().rotation_enabled, None);
    scene.fake.let_rotate("shop", true);
    for _ in 0..2 {
        let version = rotate("a").await.unwrap().version_id.unwrap();
        assert_eq!(version, "a".repeat(32));
    }
    assert_eq!(code(rotate("b").await), "InvalidRequestException");
    let told = describe().await.unwrap();
    assert_eq!((told.name(), told.rotation_enabled), (Some("shop"), Some(true)));
    let labels = told.version_ids_to_stages.unwrap();
    assert_eq!(labels[&current], ["AWSCURRENT"]);
    assert_eq!(labels[&"a".repeat(32)], ["AWSPENDING"]);
    scene.fake.move_stage("shop", Stage::Current, &"a".repeat(32)).unwrap();
    rotate("b").await.unwrap();
    assert_eq!(code(scene.client.describe_secret().secret_id("none").send().await), {
        "ResourceNotFoundException"
    });
}

/// The labels of all versions together are limited.
#[tokio::test]
async fn labels_are_limited() {
    let scene = scene().await;
    scene.fake.put("shop", "first").unwrap();
    let label = |label: &str, to: &str| {
        let call = scene.client.update_secret_version_stage().secret_id("shop");
        call.version_stage(label).move_to_version_id(to).send()
    };
    let first = scene.fake.labels("shop").into_keys().next().unwrap();
    for number in 1..20 {
        label(&format!("label-{number}"), &first).await.unwrap();
    }
    assert_eq!(code(label("label-20", &first).await), "LimitExceededException");
}

#[tokio::test]
async fn what_is_not_in_the_fake_is_told() {
    let scene = scene().await;
    let error = scene.client.list_secrets().send().await.unwrap_err();
    assert_eq!(error.raw_response().unwrap().status().as_u16(), 501);
    let mut variables = scene.fake.variables();
    for (name, value, told) in [
        ("AWS_ACCESS_KEY_ID", "other", "UnrecognizedClientException"),
        ("AWS_SESSION_TOKEN", "other", "UnrecognizedClientException"),
        ("AWS_REGION", "eu-west-1", "InvalidSignatureException"),
    ] {
        let good = variables.insert(name, value.to_owned()).unwrap();
        let config = aws_client::from_environment(
            &|name| variables.get(name).cloned(),
            Patience { attempts: 1, ..Patience::RECEIVER },
        );
        let client = Client::new(&config.unwrap());
        assert_eq!(code(client.get_secret_value().secret_id("shop").send().await), told);
        variables.insert(name, good);
    }
}

#[tokio::test]
async fn trouble_comes_in_its_turn() {
    let scene = scene().await;
    scene.fake.create("shop");
    let put = |text: &str| scene.client.put_secret_value().secret_id("shop").secret_string(text);
    scene.fake.plan([
        SecretsTrouble::THROTTLED,
        SecretsTrouble::Reset,
        SecretsTrouble::Pass,
        SecretsTrouble::LoseAnswer,
        SecretsTrouble::CutAnswer,
    ]);
    assert_eq!(code(put("first").send().await), "ThrottlingException");
    assert!(put("second").send().await.is_err());
    assert_eq!(scene.get("AWSCURRENT").await.unwrap_err(), "ResourceNotFoundException");
    assert!(put("third").send().await.is_err(), "the answer is lost");
    assert!(scene.get("AWSCURRENT").await.is_err(), "half of it comes");
    assert_eq!(scene.text(Stage::Current).await.as_deref(), Some("third"));
    scene.fake.always(Some(SecretsTrouble::INTERNAL));
    assert_eq!(code(put("fourth").send().await), "InternalServiceError");
    scene.fake.always(Some(SecretsTrouble::Hang));
    let hasty = Patience {
        attempt: Duration::from_millis(50),
        operation: Duration::from_millis(50),
        ..Patience::RECEIVER
    };
    let client = Client::new(&scene.fake.config(hasty).unwrap());
    assert!(client.get_secret_value().secret_id("shop").send().await.is_err());
    assert_eq!(scene.fake.seen().last().unwrap(), "GetSecretValue shop");
}

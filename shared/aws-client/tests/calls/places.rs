use aws_client::Patience;
use aws_sdk_secretsmanager::Client;

use crate::wire::{Answer, Wire, config, variables};

fn empty() -> Vec<Answer> {
    vec![Answer::Body { status: 200, body: "{}".to_owned() }]
}

async fn call(client: &Client) {
    client.get_secret_value().secret_id("it").send().await.unwrap();
}

/// A plain endpoint is called as the environment says, with all three parts of the credentials.
#[tokio::test]
async fn calls_are_signed_with_what_the_environment_holds() {
    let wire = Wire::start(empty()).await;
    call(&Client::new(&wire.config(Patience::RECEIVER))).await;
    let head = wire.heads().remove(0);
    for part in [
        "x-amz-security-token: hush-session-token",
        "credential=akidhush/",
        "/eu-central-1/secretsmanager/aws4_request",
        "app/gleaner",
    ] {
        assert!(head.contains(part), "{part}: {head}");
    }
    assert!(!head.contains("hush-secret-key"), "{head}");
}

#[tokio::test]
async fn a_services_own_endpoint_goes_before_the_one_for_all() {
    let (own, all) = (Wire::start(empty()).await, Wire::start(empty()).await);
    let mut variables = variables();
    let mut set = |name: &str, wire: &Wire| {
        variables.insert(name.to_owned(), format!("http://{}", wire.address));
    };
    set("AWS_ENDPOINT_URL", &all);
    set("AWS_ENDPOINT_URL_SECRETS_MANAGER", &own);
    set("AWS_ENDPOINT_URL_SQS", &all);
    call(&Client::new(&config(&variables, Patience::RECEIVER))).await;
    assert_eq!((own.heads().len(), all.heads().len()), (1, 0));
    variables.remove("AWS_ENDPOINT_URL_SECRETS_MANAGER");
    call(&Client::new(&config(&variables, Patience::RECEIVER))).await;
    assert_eq!((own.heads().len(), all.heads().len()), (1, 1));
}

#[tokio::test]
async fn clients_of_one_configuration_share_connections() {
    let wire = Wire::start(empty()).await;
    let config = wire.config(Patience::RECEIVER);
    for _ in 0..3 {
        call(&Client::new(&config)).await;
    }
    assert_eq!((wire.heads().len(), wire.connections()), (3, 1));
}

/// WK-18: a connection that the service closed meanwhile costs an attempt, not the call.
#[tokio::test]
async fn wk_18_a_closed_connection_is_opened_again() {
    let good = empty().remove(0);
    let wire = Wire::start(vec![good.clone(), Answer::Cut, good]).await;
    let client = Client::new(&wire.config(Patience::RECEIVER));
    call(&client).await;
    call(&client).await;
    assert_eq!((wire.heads().len(), wire.connections()), (3, 2));
}

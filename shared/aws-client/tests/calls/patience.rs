use std::time::Duration;

use aws_client::{Patience, port_error};
use aws_sdk_secretsmanager::Client;
use domain::ports::{ErrorKind, PortError};
use tokio::time::Instant;

use crate::wire::{Answer, Wire};

const QUICK: Patience = Patience {
    connect: Duration::from_millis(100),
    attempt: Duration::from_millis(100),
    operation: Duration::from_millis(250),
    attempts: 3,
};

/// A call, and how long it took.
async fn call(wire: &Wire, patience: Patience) -> (Result<String, PortError>, Duration) {
    let client = Client::new(&wire.config(patience));
    let began = Instant::now();
    let outcome = client.get_secret_value().secret_id("it").send().await;
    let took = began.elapsed();
    let text = outcome.map(|output| output.secret_string().unwrap_or_default().to_owned());
    (text.map_err(|error| port_error("secrets", "load", error)), took)
}

fn good() -> Answer {
    Answer::Body { status: 200, body: "{\"SecretString\":\"good\"}".to_owned() }
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again() {
    let wire = Wire::start(vec![Answer::Cut, Answer::error(500, "Odd", ""), good()]).await;
    let (outcome, _) = call(&wire, Patience::RECEIVER).await;
    assert_eq!(outcome.unwrap(), "good");
    assert_eq!(wire.heads().len(), 3);
}

#[tokio::test]
async fn silence_ends_with_the_operation() {
    let wire = Wire::start(vec![Answer::Silence]).await;
    let (outcome, took) = call(&wire, QUICK).await;
    let error = outcome.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable, "{error:?}");
    assert!(format!("{error:?}").contains("no answer within the time-out"), "{error:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(wire.heads().len() > 1, "the first attempt leaves time for another one");
}

/// The pause before the next attempt does not outlast the operation.
#[tokio::test]
async fn no_pause_outlasts_the_operation() {
    let wire = Wire::start(vec![Answer::error(503, "SlowDown", "")]).await;
    let patience = Patience { operation: Duration::from_millis(20), attempts: 5, ..QUICK };
    let (outcome, took) = call(&wire, patience).await;
    assert!(outcome.unwrap_err().is_transient());
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[tokio::test]
async fn a_refusal_is_not_repeated() {
    for code in ["ValidationException", "AccessDeniedException", "ResourceNotFoundException"] {
        let wire = Wire::start(vec![Answer::error(400, code, "")]).await;
        assert!(call(&wire, Patience::RECEIVER).await.0.is_err());
        assert_eq!(wire.heads().len(), 1, "{code}");
    }
}

/// WK-22: many attempts neither overflow a pause nor outlast the operation, and there are never
/// more than the limit.
#[tokio::test]
async fn wk_22_attempts_are_bounded() {
    for attempts in [0, 1, 5, 50, 5_000, u32::MAX] {
        let wire = Wire::start(vec![Answer::error(500, "Odd", "")]).await;
        let patience =
            Patience { attempts, operation: Duration::from_secs(20), ..Patience::WORKER };
        let (outcome, took) = call(&wire, patience).await;
        assert_eq!(outcome.unwrap_err().kind, ErrorKind::Unavailable);
        let wanted = usize::try_from(attempts.clamp(1, Patience::ATTEMPTS_MAX)).unwrap();
        assert_eq!(wire.heads().len(), wanted);
        assert!(took < patience.operation, "{took:?}");
    }
}

/// A worst case of two calls in turn, as the receiver makes them, is its own to bound; one call
/// leaves it time to answer.
#[test]
fn the_receivers_patience_ends_before_its_deadline() {
    let deadline = domain::limits::Limits::default().receive_deadline;
    let Patience { connect, attempt, operation, attempts } = Patience::RECEIVER;
    assert!(connect < attempt && attempt < operation && operation < deadline);
    assert!(attempts > 1 && operation > attempt + attempt / 2);
}

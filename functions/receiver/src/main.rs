//! The receiver's process: wires the ports to AWS, opens the connections, and takes events.

use std::process::ExitCode;
use std::sync::Arc;

use aws_client::Patience;
use domain::keyring::Keyring;
use domain::ports::{Clock, Control as _};
use host::Host;
use lambda_http::{
    Adapter, LambdaEvent, Request, RequestExt as _, Service as _, lambda_runtime, service_fn,
};
use ledger_dynamodb::DynamoLedger;
use queue_sqs::SqsQueue;
use receiver::{Event, Receiver};
use secrets_aws::AwsSecrets;
use settings::{Environment, ReceiverSettings, Role};
use system::{SystemClock, SystemRandom};

/// The row that is read to open the connection to the table; it need not be there.
const ANY_ROW: &str = "claim/tick";

fn main() -> ExitCode {
    host::run(Role::Receiver, serve)
}

async fn serve(environment: Environment) -> Result<(), host::Refusal> {
    let (settings, aws) =
        host::configured(ReceiverSettings::load(&environment), Patience::RECEIVER)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let ledger = DynamoLedger::new(&aws, &settings.shared.table, Arc::clone(&clock));
    let queue = SqsQueue::new(&aws, &settings.shared.queue_url)?;
    let limits = settings.shared.limits;
    let (ids, grace) = (&settings.webhook_secret_ids, limits.previous_grace);
    let secrets = AwsSecrets::new(&aws, ids, Arc::clone(&clock), grace);
    let keyring = Keyring::new(Arc::new(secrets), settings.scheme, &limits);
    // A read of each service opens its connection, and says in the log what is not permitted.
    let (keys, row, depth) =
        tokio::join!(keyring.current(&*clock), ledger.load_control(ANY_ROW), queue.depth());
    host::note(&"secrets", keys);
    host::note(&"ledger", row);
    host::note(&"queue", depth);

    let host = Host::new(Role::Receiver, &settings.shared.stack);
    let receiver = Receiver {
        entries: Arc::new(ledger),
        queue: Arc::new(queue),
        keyring,
        format: settings.envelope,
        limits,
        webhook_path: settings.webhook_path,
        clock,
        random: Arc::new(SystemRandom),
        metrics: host.metrics(),
    };
    let answer = service_fn(|request: Request| {
        let (host, receiver) = (&host, &receiver);
        async move {
            let context = request.lambda_context_ref();
            let id = context.map(|context| context.request_id.as_str()).unwrap_or_default();
            let response = host.invocation(id, receiver.answer(&request)).await;
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let mut answer = Adapter::from(answer);
    let answer = service_fn(move |event: LambdaEvent<Event>| {
        let LambdaEvent { payload, context } = event;
        answer.call(LambdaEvent { payload: payload.into(), context })
    });
    lambda_runtime::run(answer).await
}

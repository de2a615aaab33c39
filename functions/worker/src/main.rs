//! The worker's process: wires the ports to AWS, opens the connections, and takes events.

use std::process::ExitCode;
use std::sync::Arc;

use aws_client::Patience;
use aws_lambda_events::sqs::SqsEvent;
use domain::pause::{Pauses, Scope};
use domain::ports::Clock;
use domain::steps::Pipeline;
use host::{Host, Platform};
use lambda_runtime::{LambdaEvent, service_fn};
use ledger_dynamodb::DynamoLedger;
use queue_sqs::SqsQueue;
use results::{ObjectResults, S3Settings};
use settings::{Environment, Role, WorkerSettings};
use system::{SystemClock, SystemRandom};
use worker::Worker;

fn main() -> ExitCode {
    host::run(Role::Worker, serve)
}

async fn serve(environment: Environment) -> Result<(), host::Refusal> {
    let (settings, aws) = host::configured(WorkerSettings::load(&environment), Patience::WORKER)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let limits = settings.shared.limits;
    let ledger = DynamoLedger::new(&aws, &settings.shared.table, Arc::clone(&clock));
    let queue = SqsQueue::new(&aws, &settings.shared.queue_url)?;
    let prefix = settings.results_prefix.unwrap_or_default();
    let bucket = S3Settings::new(&aws, &settings.bucket, &prefix)?;
    let results = ObjectResults::on_s3(&bucket, Arc::clone(&clock))?;
    let platform = Platform::new(&aws, &settings.api, &limits, Arc::clone(&clock))?;
    let pauses = Arc::new(Pauses::default());
    // A read of each service opens its connection, and says in the log what is not permitted.
    let (key, pause) =
        tokio::join!(platform.load_key(), pauses.active(&ledger, Scope::All, clock.now()));
    host::note(&"API key", key);
    host::note(&"ledger", pause);

    let host = Host::new(Role::Worker, &settings.shared.stack);
    let pipeline = Pipeline {
        ledger: Arc::new(ledger),
        queue: Arc::new(queue),
        jobs: platform.jobs(&limits, Arc::clone(&clock)),
        results: Arc::new(results),
        clock,
        random: Arc::new(SystemRandom),
        limits,
        pauses,
        looks: Arc::default(),
    };
    let worker = Worker { pipeline, metrics: host.metrics() };
    let work = service_fn(|event: LambdaEvent<SqsEvent>| {
        let (host, worker) = (&host, &worker);
        async move {
            let LambdaEvent { payload, context } = event;
            let working = worker.work(payload, host::deadline(context.deadline));
            host.invocation(&context.request_id, working).await.map_err(host::Refusal::from)
        }
    });
    lambda_runtime::run(work).await
}

//! The scheduler's process: wires the ports to AWS, opens the connections, and takes events.

use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use aws_client::Patience;
use domain::pause::{Pauses, Scope};
use domain::ports::Clock;
use domain::steps::Pipeline;
use host::{Host, Platform};
use lambda_runtime::{LambdaEvent, service_fn};
use ledger_dynamodb::DynamoLedger;
use queue_sqs::SqsQueue;
use results::ObjectResults;
use scheduler::Scheduler;
use serde::de::IgnoredAny;
use settings::{Environment, Role, SchedulerSettings};
use system::{SystemClock, SystemRandom};

fn main() -> ExitCode {
    host::run(Role::Scheduler, serve)
}

async fn serve(environment: Environment) -> Result<(), host::Refusal> {
    let (settings, aws) =
        host::configured(SchedulerSettings::load(&environment), Patience::WORKER)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let limits = settings.shared.limits;
    let ledger = DynamoLedger::new(&aws, &settings.shared.table, Arc::clone(&clock));
    let queue = SqsQueue::new(&aws, &settings.shared.queue_url)?;
    let platform = Platform::new(&aws, &settings.api, &limits, Arc::clone(&clock))?;
    let pauses = Arc::new(Pauses::default());
    let (key, pause) =
        tokio::join!(platform.load_key(), pauses.active(&ledger, Scope::All, clock.now()));
    host::note(&"API key", key);
    host::note(&"ledger", pause);

    let webhooks = platform.webhooks(&limits, Arc::clone(&clock));
    let host = Host::new(Role::Scheduler, &settings.shared.stack);
    let pipeline = Pipeline {
        ledger: Arc::new(ledger),
        queue: Arc::new(queue),
        jobs: platform.jobs(&limits, Arc::clone(&clock)),
        // A run stores nothing; it has no right to the bucket.
        results: Arc::new(ObjectResults::in_memory()),
        clock,
        random: Arc::new(SystemRandom),
        limits,
        pauses,
        looks: Arc::default(),
    };
    let scheduler = Scheduler {
        webhooks,
        pipeline,
        metrics: host.metrics(),
        rules: settings.upkeep,
        first: Mutex::default(),
    };
    let tick = service_fn(|event: LambdaEvent<IgnoredAny>| {
        let (host, scheduler) = (&host, &scheduler);
        async move {
            let context = event.context;
            let ticking = scheduler.tick(host::deadline(context.deadline));
            host.invocation(&context.request_id, ticking).await.map_err(host::Refusal::from)
        }
    });
    lambda_runtime::run(tick).await
}

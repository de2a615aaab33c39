//! The rotator's process: wires the ports to AWS, opens the connections, and takes events.

use std::process::ExitCode;
use std::sync::Arc;

use aws_client::Patience;
use domain::ports::Clock;
use host::{Host, Platform};
use lambda_runtime::{LambdaEvent, service_fn};
use ledger_dynamodb::DynamoLedger;
use rotator::Rotator;
use secrets_aws::AwsVault;
use serde_json::Value;
use settings::{Environment, Role, RotatorSettings};
use system::{SystemClock, SystemRandom};

fn main() -> ExitCode {
    host::run(Role::Rotator, serve)
}

async fn serve(environment: Environment) -> Result<(), host::Refusal> {
    let (settings, aws) = host::configured(RotatorSettings::load(&environment), Patience::WORKER)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let limits = settings.shared.limits;
    let ledger = DynamoLedger::new(&aws, &settings.shared.table, Arc::clone(&clock));
    let platform = Platform::new(&aws, &settings.api, &limits, Arc::clone(&clock))?;
    host::note(&"API key", platform.load_key().await);

    let host = Host::new(Role::Rotator, &settings.shared.stack);
    let rotator = Rotator {
        vault: Arc::new(AwsVault::new(&aws, &settings.webhook_secret_ids)),
        webhooks: platform.webhooks(&limits, Arc::clone(&clock)),
        control: Arc::new(ledger),
        clock,
        random: Arc::new(SystemRandom),
        limits,
        strategy: settings.strategy,
        metrics: host.metrics(),
    };
    let step = service_fn(|event: LambdaEvent<Value>| {
        let (host, rotator) = (&host, &rotator);
        async move {
            let LambdaEvent { payload, context } = event;
            let taking = rotator.step(&payload, host::deadline(context.deadline));
            host.invocation(&context.request_id, taking).await.map_err(host::Refusal::from)
        }
    });
    lambda_runtime::run(step).await
}

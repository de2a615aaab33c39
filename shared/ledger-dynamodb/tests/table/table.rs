//! A table of a test's own, made as docs/table.md says.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use aws_client::{Patience, SdkConfig, from_environment};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, GlobalSecondaryIndex, KeySchemaElement,
    KeyType, Projection, ProjectionType, ScalarAttributeType,
};
use domain::job::JobKey;
use domain::testing::ManualClock;
use ledger_dynamodb::DynamoLedger;

use crate::server;

/// A table, and the way to it.
#[derive(Clone)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) clock: Arc<ManualClock>,
}

impl Table {
    /// A new table on the server that all tests share.
    pub(crate) async fn new() -> Self {
        static TABLES: AtomicU32 = AtomicU32::new(0);
        let number = TABLES.fetch_add(1, Ordering::Relaxed);
        let name = format!("gleaner-{}-{number}", std::process::id());
        create(&client(server::endpoint()), &name).await;
        Self { name, clock: Arc::new(ManualClock::default()) }
    }

    /// The ledger in it.
    pub(crate) fn ledger(&self) -> DynamoLedger {
        self.ledger_by(server::endpoint())
    }

    /// The ledger in it, by another way.
    pub(crate) fn ledger_by(&self, endpoint: &str) -> DynamoLedger {
        self.ledger_with(endpoint, Patience::WORKER)
    }

    /// The ledger in it, by another way, with this patience.
    pub(crate) fn ledger_with(&self, endpoint: &str, patience: Patience) -> DynamoLedger {
        DynamoLedger::new(&config(endpoint, patience), &self.name, self.clock.clone())
    }

    /// Does something to an attribute of an item, past the ledger, and returns when it is done.
    pub(crate) fn set(&self, pk: String, sk: &str, attribute: &str, value: AttributeValue) {
        let (table, sk, attribute) = (self.name.clone(), sk.to_owned(), attribute.to_owned());
        let change = async move {
            let update = client(server::endpoint()).update_item().table_name(table);
            update
                .key("pk", AttributeValue::S(pk))
                .key("sk", AttributeValue::S(sk))
                .update_expression("SET #attribute = :value")
                .condition_expression("attribute_exists(pk)")
                .expression_attribute_names("#attribute", attribute)
                .expression_attribute_values(":value", value)
                .send()
                .await
                .unwrap();
        };
        // The caller may be inside of a runtime, where nobody may wait.
        std::thread::spawn(|| testkit::run(change)).join().unwrap();
    }
}

/// The partition key of a job's item.
pub(crate) fn pk(key: &JobKey) -> String {
    format!("job#{}", key.job_id)
}

/// The functions' own configuration, with an endpoint.
fn config(endpoint: &str, patience: Patience) -> SdkConfig {
    let variables = |name: &str| match name {
        "AWS_REGION" => Some("eu-central-1".to_owned()),
        "AWS_ACCESS_KEY_ID" => Some("AKIATEST".to_owned()),
        "AWS_SECRET_ACCESS_KEY" => Some("test".to_owned()),
        "AWS_ENDPOINT_URL_DYNAMODB" => Some(endpoint.to_owned()),
        _ => None,
    };
    from_environment(&variables, patience).unwrap()
}

pub(crate) fn client(endpoint: &str) -> Client {
    Client::new(&config(endpoint, Patience::WORKER))
}

async fn create(client: &Client, name: &str) {
    let keys = ["pk", "sk", "due_shard", "due_sort", "list_key", "list_sort"];
    let mut create = client.create_table().table_name(name);
    for key in keys {
        let definition = AttributeDefinition::builder().attribute_name(key);
        let definition = definition.attribute_type(ScalarAttributeType::S).build().unwrap();
        create = create.attribute_definitions(definition);
    }
    let posted_at = Projection::builder()
        .projection_type(ProjectionType::Include)
        .non_key_attributes("posted_at")
        .build();
    let keys_only = Projection::builder().projection_type(ProjectionType::KeysOnly).build();
    create
        .set_key_schema(Some(schema("pk", "sk")))
        .global_secondary_indexes(index("due", ("due_shard", "due_sort"), posted_at))
        .global_secondary_indexes(index("listing", ("list_key", "list_sort"), keys_only))
        .billing_mode(BillingMode::PayPerRequest)
        .send()
        .await
        .unwrap();
}

fn schema(partition: &str, sort: &str) -> Vec<KeySchemaElement> {
    [(partition, KeyType::Hash), (sort, KeyType::Range)]
        .map(|(name, kind)| {
            KeySchemaElement::builder().attribute_name(name).key_type(kind).build().unwrap()
        })
        .into()
}

fn index(name: &str, keys: (&str, &str), projection: Projection) -> GlobalSecondaryIndex {
    GlobalSecondaryIndex::builder()
        .index_name(name)
        .set_key_schema(Some(schema(keys.0, keys.1)))
        .projection(projection)
        .build()
        .unwrap()
}

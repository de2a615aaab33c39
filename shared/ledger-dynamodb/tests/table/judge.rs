//! The server is as strict as AWS in what this ledger could do wrong: a judge that is kinder proves
//! nothing.

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes};

use crate::server;
use crate::table::{Table, client};

fn text(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

fn is_refused<T, E: ProvideErrorMetadata>(what: &str, answer: Result<T, SdkError<E>>) {
    let code = answer.err().and_then(|error| error.code().map(str::to_owned));
    assert_eq!(code.as_deref(), Some("ValidationException"), "{what}");
}

/// DQ-11, PL-03: items that DynamoDB does not take: keys that are empty, too long or of another
/// type, index keys likewise, and more than 400 KiB in all. How long an index key is, emulators do
/// not look at: the ledger does.
#[test]
fn items_that_aws_refuses_are_refused() {
    testkit::run(async {
        let table = Table::new().await;
        let client = client(server::endpoint());
        let whole = |bytes: usize| "x".repeat(bytes);
        let items = [
            ("an empty key", vec![("pk", text("")), ("sk", text("a"))]),
            ("an empty sort key", vec![("pk", text("a")), ("sk", text(""))]),
            ("a long key", vec![("pk", text(whole(2_049))), ("sk", text("a"))]),
            ("a long key in bytes", vec![("pk", text("\u{20ac}".repeat(683))), ("sk", text("a"))]),
            ("a long sort key", vec![("pk", text("a")), ("sk", text(whole(1_025)))]),
            (
                "a key of another type",
                vec![("pk", AttributeValue::N("1".into())), ("sk", text("a"))],
            ),
            ("no sort key", vec![("pk", text("a"))]),
            (
                "too much",
                vec![("pk", text("a")), ("sk", text("a")), ("json", text(whole(409_600)))],
            ),
            (
                "an empty index key",
                vec![("pk", text("a")), ("sk", text("a")), ("due_shard", text(""))],
            ),
            (
                "an index key of another type",
                vec![
                    ("pk", text("a")),
                    ("sk", text("a")),
                    ("due_sort", AttributeValue::N("1".into())),
                ],
            ),
        ];
        for (what, attributes) in items {
            let mut put = client.put_item().table_name(&table.name);
            for (name, value) in attributes {
                put = put.item(name, value);
            }
            is_refused(what, put.send().await);
        }
        // The longest that is taken.
        let put = client.put_item().table_name(&table.name);
        let put = put.item("pk", text(whole(2_048))).item("sk", text(whole(1_024)));
        put.send().await.unwrap();
    });
}

/// DQ-11: requests that DynamoDB does not take.
#[test]
fn requests_that_aws_refuses_are_refused() {
    testkit::run(async {
        let table = Table::new().await;
        let client = client(server::endpoint());
        let put = || {
            let put = client.put_item().table_name(&table.name);
            put.item("pk", text("a")).item("sk", text("a"))
        };
        let reserved = put()
            .condition_expression("state = :state")
            .expression_attribute_values(":state", text("a"));
        is_refused("a reserved word", reserved.send().await);
        let unused = put()
            .condition_expression("attribute_not_exists(pk)")
            .expression_attribute_names("#unused", "state");
        is_refused("a name that is not used", unused.send().await);
        let query = |from: &str, to: &str| {
            client
                .query()
                .table_name(&table.name)
                .index_name("due")
                .key_condition_expression("due_shard = :shard AND due_sort BETWEEN :from AND :to")
                .expression_attribute_values(":shard", text("open#0"))
                .expression_attribute_values(":from", text(from))
                .expression_attribute_values(":to", text(to))
        };
        is_refused("bounds in the wrong order", query("b", "a").send().await);
        is_refused(
            "a consistent read of an index",
            query("a", "b").consistent_read(true).send().await,
        );
        let foreign = query("a", "b").exclusive_start_key("pk", text("a"));
        is_refused("a start that is no key", foreign.send().await);
        let keys = |count: usize, distinct: bool| {
            let keys = (0..count).map(|number| {
                let id = if distinct { number.to_string() } else { "a".to_owned() };
                [("pk".to_owned(), text(id)), ("sk".to_owned(), text("a"))].into()
            });
            let keys = KeysAndAttributes::builder().set_keys(Some(keys.collect())).build().unwrap();
            client.batch_get_item().request_items(&table.name, keys)
        };
        is_refused("a key twice", keys(2, false).send().await);
        is_refused("more than a hundred keys", keys(101, true).send().await);
        keys(100, true).send().await.unwrap();
    });
}

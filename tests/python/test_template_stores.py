"""What is kept: the table, the results, the secrets."""

import re

import pytest

from template import GONE, REPOSITORY, Rules, changed, findings, load

RULES = Rules()
TEMPLATE = load()
TABLE_PAGE = (REPOSITORY / "docs/table.md").read_text(encoding="utf-8")


def keys(schema):
    return [(it["AttributeName"], it["KeyType"]) for it in schema]


@RULES.rule(
    ("Table/Properties/KeySchema/1/AttributeName", "kind"),
    ("Table/Properties/AttributeDefinitions/2/AttributeType", "N"),
    ("Table/Properties/AttributeDefinitions/5", GONE),
    ("Table/Properties/GlobalSecondaryIndexes/0/IndexName", "open"),
    ("Table/Properties/GlobalSecondaryIndexes/0/Projection", {"ProjectionType": "KEYS_ONLY"}),
    ("Table/Properties/GlobalSecondaryIndexes/1/KeySchema/0/AttributeName", "due_shard"),
    ("Table/Properties/GlobalSecondaryIndexes/1", GONE),
)
def the_table_is_as_its_page_says(stack):
    table = stack.properties("Table")
    told = set(re.findall(r"`([a-z_]+)` \(S\)", TABLE_PAGE))
    defined = {it["AttributeName"]: it["AttributeType"] for it in table["AttributeDefinitions"]}
    if defined != dict.fromkeys(told, "S"):
        yield f"attributes {defined}"
    if keys(table["KeySchema"]) != [("pk", "HASH"), ("sk", "RANGE")]:
        yield f"keys {table['KeySchema']}"
    told = re.findall(
        r"index `(\w+)` \| `(\w+)` \(HASH\), `(\w+)` \(RANGE\); projection `(\w+)`(?:: `(\w+)`)?",
        TABLE_PAGE,
    )
    assert told
    given = []
    for index in table["GlobalSecondaryIndexes"]:
        (first, _), (second, _) = keys(index["KeySchema"])
        projection = index["Projection"]
        attributes = ",".join(projection.get("NonKeyAttributes", []))
        given.append((index["IndexName"], first, second, projection["ProjectionType"], attributes))
    if given != told:
        yield f"indexes {given}"


@RULES.rule(
    ("Table/Properties/TimeToLiveSpecification/AttributeName", "ttl"),
    ("Table/Properties/TimeToLiveSpecification/Enabled", False),
    ("Table/Properties/TimeToLiveSpecification", GONE),
    ("Table/Properties/PointInTimeRecoverySpecification", GONE),
    (
        "Table/Properties/PointInTimeRecoverySpecification/PointInTimeRecoveryEnabled",
        False,
    ),
    ("Table/Properties/BillingMode", "PROVISIONED"),
    ("Table/Properties/DeletionProtectionEnabled", False),
    ("Table/Properties/SSESpecification", {"SSEEnabled": True}),
    ("Table/Properties/StreamSpecification", {"StreamViewType": "KEYS_ONLY"}),
    ("Table/Properties/TableName", "gleaner"),
)
# DQ-05: expiry is a number of seconds in the attribute that the ledger writes.
def the_table_forgets_what_has_ended_and_nothing_else(stack):
    table = stack.properties("Table")
    expiry = {"AttributeName": "expires_at", "Enabled": True}
    if table.get("TimeToLiveSpecification") != expiry:
        yield "no expiry, or of another attribute"
    recovery = table.get("PointInTimeRecoverySpecification", {})
    if recovery.get("PointInTimeRecoveryEnabled") is not True:
        yield "no point-in-time recovery"
    if table["BillingMode"] != "PAY_PER_REQUEST":
        yield "not on demand"
    if table.get("DeletionProtectionEnabled") is not True:
        yield "anybody can delete it"
    # DynamoDB encrypts every table; this would be a paid key, for each request.
    if "SSESpecification" in table or "StreamSpecification" in table:
        yield "pays for more than is needed"
    if "TableName" in table:
        yield "a name that a second stack would meet"


@RULES.rule(
    ("Bucket/Properties/BucketEncryption", GONE),
    ("Bucket/Properties/PublicAccessBlockConfiguration/BlockPublicPolicy", False),
    ("Bucket/Properties/PublicAccessBlockConfiguration", GONE),
    ("Bucket/Properties/OwnershipControls", GONE),
    ("BucketPolicy/Properties/PolicyDocument/Statement/0", GONE),
    ("BucketPolicy/Properties/PolicyDocument/Statement/0/Resource", {"Fn::Sub": "${Bucket.Arn}/*"}),
    ("BucketPolicy", GONE),
)
def results_are_private_and_encrypted(stack):
    bucket = stack.properties("Bucket")
    encryption = bucket.get("BucketEncryption", {}).get("ServerSideEncryptionConfiguration")
    if encryption != [{"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]:
        yield "not encrypted"
    blocks = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
    if bucket.get("PublicAccessBlockConfiguration") != dict.fromkeys(blocks, True):
        yield "may become public"
    owner = {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    if bucket.get("OwnershipControls") != owner:
        yield "objects may belong to others"
    tls = {
        "Sid": "OnlyOverTls",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": ["${Bucket.Arn}", "${Bucket.Arn}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    if tls not in statements(stack):
        yield "open to plain HTTP"


def statements(stack):
    policies = stack.of_type("AWS::S3::BucketPolicy").values()
    return [it for policy in policies for it in policy["Properties"]["PolicyDocument"]["Statement"]]


@RULES.rule(
    ("BucketPolicy/Properties/PolicyDocument/Statement/1", GONE),
    ("BucketPolicy/Properties/PolicyDocument/Statement/1/Effect", "Allow"),
    ("BucketPolicy/Properties/PolicyDocument/Statement/1/Condition/Null", {}),
    ("Bucket/Properties/NotificationConfiguration", GONE),
    (
        "Bucket/Properties/NotificationConfiguration/EventBridgeConfiguration/EventBridgeEnabled",
        False,
    ),
    ("Bucket/Properties/LifecycleConfiguration", GONE),
    ("Bucket/Properties/LifecycleConfiguration/Rules/0/Status", "Disabled"),
    ("Bucket/Properties/LifecycleConfiguration/Rules/0/ExpirationInDays", 30),
)
# A result appears once and never changes, and consumers are told of it.
def results_appear_once_and_stay(stack):
    bucket = stack.properties("Bucket")
    once = {
        "Sid": "OnlyWhereNothingLies",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:PutObject",
        "Resource": "${Bucket.Arn}/*",
        "Condition": {
            "Null": {"s3:if-none-match": "true"},
            "Bool": {"s3:ObjectCreationOperation": "true"},
        },
    }
    if once not in statements(stack):
        yield "objects can be overwritten"
    events = {"EventBridgeConfiguration": {"EventBridgeEnabled": True}}
    if bucket.get("NotificationConfiguration") != events:
        yield "nobody is told of new objects"
    rule = {
        "Id": "unfinished-uploads",
        "Status": "Enabled",
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
    }
    if bucket.get("LifecycleConfiguration") != {"Rules": [rule]}:
        yield "unfinished uploads stay, or results do not"


STORES = ("AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SecretsManager::Secret")


@RULES.rule(
    *(
        (f"{name}/{policy}", GONE)
        for name in ("Table", "Bucket", "ApiKeySecret", "CrawlWebhookSecret")
        for policy in ("DeletionPolicy", "UpdateReplacePolicy")
    ),
    ("Table/DeletionPolicy", "Delete"),
)
def what_cannot_be_made_again_outlives_the_stack(stack):
    for kind in STORES:
        for name, resource in stack.of_type(kind).items():
            policies = (resource.get("DeletionPolicy"), resource.get("UpdateReplacePolicy"))
            if policies != ("Retain", "Retain"):
                yield f"{name} is lost"


@RULES.rule(
    ("ApiKeySecret/Properties/SecretString", "change-me"),
    ("ExtractWebhookSecret/Properties/GenerateSecretString", {}),
    ("ApiKeySecret/Condition", GONE),
    ("BatchWebhookSecret/Condition", "MakesWebhookSecrets"),
    ("Conditions/MakesCrawlWebhookSecret", {"Condition": "MakesWebhookSecrets"}),
    ("Worker/Properties/Environment/Variables/GLEANER_API_KEY_SECRET_ID", "{{resolve:ssm:key}}"),
    (
        "Receiver/Properties/Environment/Variables/GLEANER_WEBHOOK_SECRET_IDS",
        "{{resolve:secretsmanager:gleaner}}",
    ),
)
# SM-09, SG-06: secrets are made empty, and only their names are handed to the functions.
def no_secret_is_in_the_template(stack):
    if "{{resolve:" in str(stack.document):
        yield "a value that is frozen when the stack is deployed"
    secrets = stack.of_type("AWS::SecretsManager::Secret")
    for name, secret in secrets.items():
        if not secret["Properties"].keys() <= {"Description", "KmsKeyId"}:
            yield f"{name} has a value that somebody knows"
    wanted = set() if stack.parameters["ApiKeySecretArn"] else {"ApiKeySecret"}
    if not stack.parameters["WebhookSecretArns"]:
        kinds = stack.parameters["WebhookKinds"].title().split(",")
        wanted |= {f"{kind}WebhookSecret" for kind in kinds}
    if secrets.keys() != wanted:
        yield f"made {list(secrets)} for {list(wanted)}"
    # The receiver accepts nothing before each secret that it is told of has a value.
    variables = stack.properties("Receiver")["Environment"]["Variables"]
    named = re.findall(r"\$\{(\w+)\.Id\}", variables["GLEANER_WEBHOOK_SECRET_IDS"])
    if set(named) != wanted - {"ApiKeySecret"}:
        yield f"the receiver is told of {named}"


@pytest.mark.parametrize("rule", RULES.each())
def test_the_template_keeps_the_rule(rule):
    assert findings(rule, TEMPLATE) == []


@pytest.mark.parametrize(("rule", "path", "value"), RULES.each_change())
def test_the_rule_objects(rule, path, value):
    assert findings(rule, changed(TEMPLATE, path, value)) != []

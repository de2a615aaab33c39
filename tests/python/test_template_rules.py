"""What must hold of the deployed stack, and that each rule notices when it does not."""

import re

import pytest

from template import GONE, REPOSITORY, Rules, changed, findings, functions, load

RULES = Rules()
TEMPLATE = load()

# Seconds. Sources: Amazon SQS, Lambda and API Gateway, quotas.
VISIBILITY_MAX = 43_200
FUNCTION_TIMEOUT_MAX = 900
INTEGRATION_TIMEOUT_MAX = 30
# AWS Lambda, "Configuring a queue to use with Lambda".
VISIBILITY_PER_TIMEOUT = 6
RETENTION_MAX = 14 * 24 * 3600
# The receiver answers within 2.5 s; platforms give up after seconds.
RECEIVER_TIMEOUT_MAX = 10
# What SQS hands over at once without a window.
BATCH_MAX = 10
# Below that, tasks that were throttled on their way would be given up.
RECEIVES_MIN = 5
CONCURRENCY_MIN = 2


def seconds(stack, name):
    return int(stack.properties(name)["Timeout"])


@RULES.rule(
    ("Mappings/WorkerTimeouts/120/Visibility", 720),
    ("Mappings/WorkerTimeouts/900/Visibility", 5_399),
    ("Queue/Properties/VisibilityTimeout", 730),
    ("Worker/Properties/Timeout", 900),
    ("Parameters/BatchWindow/MaxValue", 300),
)
# DP-08, WK-06: whatever time-out is chosen, SQS accepts it and hides tasks long enough.
def tasks_are_hidden_long_enough(stack):
    visibility = int(stack.properties("Queue")["VisibilityTimeout"])
    window = stack.document["Parameters"]["BatchWindow"]["MaxValue"]
    wanted = VISIBILITY_PER_TIMEOUT * seconds(stack, "Worker") + window
    if not wanted <= visibility <= VISIBILITY_MAX:
        yield f"visibility {visibility}, wanted {wanted}"


@RULES.rule(
    ("Queue/Properties/MessageRetentionPeriod", RETENTION_MAX),
    ("DeadLetterQueue/Properties/MessageRetentionPeriod", 345_600),
    ("DeadLetterQueue/Properties/MessageRetentionPeriod", GONE),
)
# WK-07: a message keeps its age when it moves to the dead-letter queue.
def dead_letters_are_kept_longer(stack):
    queue, dead = (
        int(stack.properties(name).get("MessageRetentionPeriod", 345_600))
        for name in ("Queue", "DeadLetterQueue")
    )
    if dead != RETENTION_MAX or queue > dead / 2:
        yield f"tasks are kept {queue} s, dead letters {dead} s"


@RULES.rule(
    ("Queue/Properties/RedrivePolicy/maxReceiveCount", 3),
    ("Queue/Properties/RedrivePolicy", GONE),
    ("Queue/Properties/RedrivePolicy/deadLetterTargetArn", {"Fn::GetAtt": ["Queue", "Arn"]}),
)
# WK-06
def tasks_have_attempts_enough(stack):
    redrive = stack.properties("Queue").get("RedrivePolicy", {})
    if redrive.get("deadLetterTargetArn") != "${DeadLetterQueue.Arn}":
        yield "no dead-letter queue"
    if int(redrive.get("maxReceiveCount", 0)) < RECEIVES_MIN:
        yield "too few attempts"


@RULES.rule(
    ("Queue/Properties/FifoQueue", True),
    ("Queue/Properties/SqsManagedSseEnabled", False),
    ("DeadLetterQueue/Properties/SqsManagedSseEnabled", GONE),
    ("QueuePolicy/Properties/PolicyDocument/Statement/0/Condition/Bool", {}),
    ("DeadLetterQueuePolicy", GONE),
)
# WK-20
def queues_are_standard_encrypted_and_over_tls(stack):
    policies = [it["Properties"] for it in stack.of_type("AWS::SQS::QueuePolicy").values()]
    for name, queue in stack.of_type("AWS::SQS::Queue").items():
        properties = queue["Properties"]
        if "FifoQueue" in properties:
            yield f"{name} is a FIFO queue"
        if properties.get("SqsManagedSseEnabled") is not True:
            yield f"{name} is not encrypted"
        own = [it["PolicyDocument"] for it in policies if it["Queues"] == [f"${{{name}}}"]]
        if not any(denies_plain(policy, "sqs:*", f"${{{name}.Arn}}") for policy in own):
            yield f"{name} is open to plain HTTP"


def denies_plain(policy, action, resource):
    return {
        "Sid": "OnlyOverTls",
        "Effect": "Deny",
        "Principal": "*",
        "Action": action,
        "Resource": resource,
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    } in policy["Statement"]


@RULES.rule(
    ("RotatorPermission", GONE),
    ("RotatorPermission/Properties/Principal", "*"),
    ("RotatorPermission/Properties/SourceAccount", GONE),
    ("RotatorPermission/Properties/FunctionName", {"Ref": "Scheduler"}),
    ("RotatorPermission/Properties/Action", "lambda:*"),
)
def secrets_manager_of_this_account_runs_the_rotator(stack):
    own = [
        it["Properties"]
        for it in stack.of_type("AWS::Lambda::Permission").values()
        if it["Properties"]["FunctionName"] == "${Rotator}"
    ]
    wanted = {
        "Action": "lambda:InvokeFunction",
        "FunctionName": "${Rotator}",
        "Principal": "secretsmanager.amazonaws.com",
        "SourceAccount": "123456789012",
    }
    if own != [wanted]:
        yield f"the rotator is run by {own}"


@RULES.rule(
    ("ExtractRotationSchedule", GONE),
    ("BatchRotationSchedule/Properties/SecretId", {"Ref": "ExtractWebhookSecret"}),
    ("CrawlRotationSchedule/Properties/RotationLambdaARN", {"Fn::GetAtt": ["Worker", "Arn"]}),
    ("CrawlRotationSchedule/Properties/RotationRules", {"AutomaticallyAfterDays": 1}),
    ("BatchRotationSchedule/Properties/RotateImmediatelyOnUpdate", GONE),
    ("BatchRotationSchedule/Properties/RotateImmediatelyOnUpdate", True),
    ("ExtractRotationSchedule/DependsOn", GONE),
    ("ExtractRotationSchedule/Condition", "MakesExtractWebhookSecret"),
    ("Conditions/HasRotation", {"Fn::Equals": [0, 0]}),
)
# A secret that was just made has no value that could be rotated.
def secrets_are_rotated_when_asked_for_and_not_at_once(stack):
    days = stack.parameters["RotationDays"]
    is_on = days != "0" and not stack.parameters["WebhookSecretArns"]
    kinds = stack.parameters["WebhookKinds"].title().split(",") if is_on else []
    schedules = stack.of_type("AWS::SecretsManager::RotationSchedule")
    if schedules.keys() != {f"{kind}RotationSchedule" for kind in kinds}:
        yield f"schedules for {sorted(schedules)}, wanted for {kinds}"
    for name, schedule in schedules.items():
        wanted = {
            "SecretId": f"${{{name.removesuffix('RotationSchedule')}WebhookSecret}}",
            "RotationLambdaARN": "${Rotator.Arn}",
            "RotationRules": {"AutomaticallyAfterDays": days},
            "RotateImmediatelyOnUpdate": False,
        }
        if schedule["Properties"] != wanted:
            yield f"{name}: {schedule['Properties']}"
        # Secrets Manager tries at once whether it may run the function.
        if schedule.get("DependsOn") != "RotatorPermission":
            yield f"{name} may be made before its function may be run"


@RULES.rule(
    ("WorkerMapping/Properties/FunctionResponseTypes", GONE),
    ("WorkerMapping/Properties/ScalingConfig", GONE),
    ("WorkerMapping/Properties/ScalingConfig/MaximumConcurrency", 1),
    ("Parameters/WorkerConcurrency/MinValue", 1),
    ("WorkerMapping/Properties/BatchSize", 100),
    ("WorkerMapping/Properties/Enabled", False),
    ("WorkerMapping/Properties/FunctionName", {"Ref": "Receiver"}),
    ("WorkerMapping/Properties/EventSourceArn", {"Fn::GetAtt": ["DeadLetterQueue", "Arn"]}),
)
# WK-01, WK-06: without the response type SQS deletes whole batches, or delivers them again.
def workers_answer_for_each_record(stack):
    [mapping] = stack.of_type("AWS::Lambda::EventSourceMapping").values()
    properties = mapping["Properties"]
    if properties.get("FunctionResponseTypes") != ["ReportBatchItemFailures"]:
        yield "answers for whole batches"
    if (properties["EventSourceArn"], properties["FunctionName"]) != ("${Queue.Arn}", "${Worker}"):
        yield "takes from somewhere else"
    if not 1 <= properties["BatchSize"] <= BATCH_MAX or properties.get("Enabled") is False:
        yield "takes too much, or nothing"
    concurrency = int(properties.get("ScalingConfig", {}).get("MaximumConcurrency", 0))
    least = stack.document["Parameters"]["WorkerConcurrency"]["MinValue"]
    if min(concurrency, least) < CONCURRENCY_MIN:
        yield "a concurrency that AWS refuses, or none"


@RULES.rule(
    ("Worker/Properties/ReservedConcurrentExecutions", 10),
    ("Receiver/Properties/ReservedConcurrentExecutions", 100),
)
# WK-06: reserved concurrency throttles, and throttled tasks use up their attempts.
def no_concurrency_is_reserved(stack):
    for name, function in functions(stack.document).items():
        if "ReservedConcurrentExecutions" in function["Properties"]:
            yield f"{name} reserves"


@RULES.rule(
    ("Receiver/Properties/Timeout", 30),
    ("Receiver/Properties/Timeout", 10),
    ("ApiIntegration/Properties/TimeoutInMillis", 30_001),
    ("Mappings/Schedules/5/Timeout", 300),
    ("Mappings/Schedules/60/Timeout", 901),
)
def time_outs_fit_into_each_other(stack):
    receiver = seconds(stack, "Receiver")
    integration = stack.properties("ApiIntegration")["TimeoutInMillis"] / 1000
    if not receiver < integration <= INTEGRATION_TIMEOUT_MAX or receiver > RECEIVER_TIMEOUT_MAX:
        yield f"the receiver has {receiver} s, the API waits {integration} s"
    if seconds(stack, "Worker") > FUNCTION_TIMEOUT_MAX:
        yield "the worker's time-out is too long"
    schedule = stack.document["Mappings"]["Schedules"][stack.parameters["ScheduleMinutes"]]
    if not seconds(stack, "Scheduler") <= min(FUNCTION_TIMEOUT_MAX, schedule["Seconds"] - 10):
        yield "a run of the scheduler meets the next one"


@RULES.rule(
    ("Worker/Properties/Runtime", "provided.al2"),
    ("Worker/Properties/Handler", "worker"),
    ("Receiver/Properties/Architectures", ["x86_64"]),
    ("Receiver/Metadata/BuildProperties/Binary", "worker"),
    ("Scheduler/Metadata/BuildMethod", "makefile"),
    ("Scheduler/Properties/CodeUri", "functions"),
)
# DP-02, DP-04: each function is built from its own folder, for the architecture it runs on.
def functions_are_built_as_they_run(stack):
    for name, function in functions(stack.document).items():
        properties, metadata = function["Properties"], function["Metadata"]
        if (properties["Runtime"], properties["Handler"]) != ("provided.al2023", "bootstrap"):
            yield f"{name} runs on something else"
        if properties["Architectures"] != [{"Ref": "Architecture"}]:
            yield f"{name} runs on another architecture"
        if metadata["BuildMethod"] != "rust-cargolambda":
            yield f"{name} is not built by cargo-lambda"
        binary = metadata["BuildProperties"]["Binary"]
        folder = REPOSITORY / properties["CodeUri"]
        manifest = folder / "Cargo.toml"
        if folder.name != binary or not manifest.is_file():
            yield f"{name} is built from {properties['CodeUri']}"
        elif f'name = "{binary}"' not in manifest.read_text(encoding="utf-8"):
            yield f"{manifest} does not make {binary}"


@RULES.rule(
    ("Worker/Properties/LoggingConfig/LogFormat", "Text"),
    ("Worker/Properties/LoggingConfig/ApplicationLogLevel", "WARN"),
    ("Worker/Properties/LoggingConfig/ApplicationLogLevel", GONE),
    ("Worker/Properties/LoggingConfig/LogGroup", "/aws/lambda/worker"),
    ("WorkerLogs/Properties/RetentionInDays", GONE),
    ("Scheduler/Properties/LoggingConfig", GONE),
)
# OB-03: lines of metrics have no level of their own; stricter than `INFO`, Lambda drops them.
def logs_are_json_and_end(stack):
    groups = stack.of_type("AWS::Logs::LogGroup")
    for name, group in groups.items():
        if int(group["Properties"].get("RetentionInDays", 0)) < 1:
            yield f"{name} keeps everything for ever"
    for name in functions(stack.document):
        logging = stack.properties(name).get("LoggingConfig", {})
        if logging.get("LogFormat") != "JSON":
            yield f"{name} does not log JSON"
        if logging.get("ApplicationLogLevel") != "TRACE":
            yield f"{name} may lose lines"
        # A reference makes the group before the function.
        if logging.get("LogGroup") not in [f"${{{group}}}" for group in groups]:
            yield f"{name} makes its own group"


@RULES.rule(
    ("Api/Properties/ProtocolType", "WEBSOCKET"),
    ("ApiRoute/Properties/RouteKey", "$default"),
    ("ApiRoute/Properties/RouteKey", {"Fn::Sub": "ANY ${WebhookPath}"}),
    ("ApiIntegration/Properties/PayloadFormatVersion", "1.0"),
    ("ApiIntegration/Properties/IntegrationUri", {"Fn::GetAtt": ["Worker", "Arn"]}),
    ("ApiStage/Properties/AutoDeploy", False),
    ("ApiStage/Properties/StageName", "prod"),
    ("ApiStage/Properties/DefaultRouteSettings/ThrottlingRateLimit", GONE),
    ("ApiStage/Properties/DefaultRouteSettings/ThrottlingBurstLimit", GONE),
)
def the_api_routes_deliveries_alone(stack):
    if stack.properties("Api")["ProtocolType"] != "HTTP":
        yield "no HTTP API"
    routes = stack.of_type("AWS::ApiGatewayV2::Route").values()
    path = stack.parameters["WebhookPath"]
    if [it["Properties"]["RouteKey"] for it in routes] != [f"POST {path}"]:
        yield "other routes"
    integration = stack.properties("ApiIntegration")
    if integration["PayloadFormatVersion"] != "2.0":
        yield "another payload version"
    if integration["IntegrationUri"] != "${Receiver.Arn}":
        yield "another function"
    stage = stack.properties("ApiStage")
    if stage["StageName"] != "$default" or stage["AutoDeploy"] is not True:
        yield "the route is not reached at its own path"
    settings = stage["DefaultRouteSettings"]
    if not settings.keys() >= {"ThrottlingRateLimit", "ThrottlingBurstLimit"}:
        yield "nothing is throttled"


@RULES.rule(
    ("ApiStage/Properties/AccessLogSettings", GONE),
    ("ApiStage/Properties/AccessLogSettings/Format", '{"ip":"$context.identity.sourceIp"}'),
    ("ApiStage/Properties/AccessLogSettings/Format", '{"status":$context.status'),
    ("ApiStage/Properties/AccessLogSettings/DestinationArn", {"Fn::GetAtt": ["WorkerLogs", "Arn"]}),
)
# OB-01: neither addresses nor what a sender wrote is logged.
def refused_deliveries_are_logged_without_their_sender(stack):
    settings = stack.properties("ApiStage").get("AccessLogSettings", {})
    if settings.get("DestinationArn") != "${ApiLogs.Arn}":
        yield "no log, or somebody else's"
    variables = re.findall(r"\$context\.([A-Za-z.]+)", settings.get("Format", ""))
    told = {"requestId", "requestTimeEpoch", "routeKey", "status", "responseLength"}
    told |= {"responseLatency", "integration.status", "error.responseType"}
    if not variables or not told.issuperset(variables):
        yield f"logs {variables}"
    entry = re.sub(r"\$context\.[A-Za-z.]+", "x", settings.get("Format", ""))
    if not re.fullmatch(r'\{("[a-z_]+":"x",?)+\}', entry):
        yield "entries are no JSON"


@RULES.rule(
    ("ApiPermission/Properties/SourceArn", GONE),
    ("ApiPermission/Properties/SourceArn", {"Fn::Sub": "arn:aws:execute-api:*:*:${Api}/*"}),
    ("ReceiverUrlInvokePermission", GONE),
    ("ReceiverUrlPermission", GONE),
    ("ReceiverUrlInvokePermission/Properties/InvokedViaFunctionUrl", GONE),
    ("ReceiverUrlInvokePermission/Condition", GONE),
    ("ReceiverUrl/Condition", GONE),
)
# DP-06: a public function URL needs two permissions; and nobody else may invoke the receiver.
def the_receiver_is_invoked_by_its_ways_in_alone(stack):
    path = stack.parameters["WebhookPath"]
    api = {
        "Action": "lambda:InvokeFunction",
        "FunctionName": "${Receiver}",
        "Principal": "apigateway.amazonaws.com",
        "SourceArn": f"arn:aws:execute-api:eu-central-1:123456789012:${{Api}}/*/POST{path}",
    }
    url = {"FunctionName": "${Receiver}", "Principal": "*"}
    expected = [api]
    if stack.parameters["FunctionUrl"] == "enabled":
        expected += [
            {**url, "Action": "lambda:InvokeFunctionUrl", "FunctionUrlAuthType": "NONE"},
            {**url, "Action": "lambda:InvokeFunction", "InvokedViaFunctionUrl": True},
        ]
    given = [
        it["Properties"]
        for name, it in stack.of_type("AWS::Lambda::Permission").items()
        if name != "RotatorPermission"
    ]
    if sorted(map(str, map(sorted_items, given))) != sorted(map(str, map(sorted_items, expected))):
        yield f"permissions: {given}"
    urls = stack.of_type("AWS::Lambda::Url")
    if len(urls) != len(expected) // 2:
        yield f"function URLs: {list(urls)}"


def sorted_items(it):
    return sorted(it.items())


@RULES.rule(
    ("Schedule/Properties/Target/RetryPolicy", GONE),
    ("Schedule/Properties/Target/RetryPolicy/MaximumRetryAttempts", 185),
    ("Schedule/Properties/FlexibleTimeWindow/Mode", "FLEXIBLE"),
    ("Schedule/Properties/Target/Input", "{}"),
    ("Schedule/Properties/Target/Arn", {"Fn::GetAtt": ["Worker", "Arn"]}),
    ("Schedule/Properties/State", "DISABLED"),
    ("Scheduler/Properties/EventInvokeConfig/MaximumRetryAttempts", 2),
    ("Scheduler/Properties/EventInvokeConfig", GONE),
    ("SchedulerErrorsAlarm", GONE),
    ("SchedulerErrorsAlarm/Properties/AlarmActions", []),
    ("Mappings/Schedules/1/Expression", "rate(1 minutes)"),
    ("Mappings/Schedules/15/Expression", "rate(10 minutes)"),
    ("Mappings/Schedules/60/Seconds", 60),
)
# SC-11: a run that failed is followed by the next one, neither by Lambda's retries nor by the
# schedule's. It has no input to be kept, so that its failure goes to people and to no queue.
def the_schedule_is_its_own_repetition(stack):
    schedule = stack.properties("Schedule")
    target = schedule["Target"]
    if target.get("RetryPolicy", {}).get("MaximumRetryAttempts") != 0:
        yield "the schedule tries again"
    invoke = stack.properties("Scheduler").get("EventInvokeConfig", {})
    if invoke.get("MaximumRetryAttempts") != 0:
        yield "Lambda tries again"
    alarm = stack.resources.get("SchedulerErrorsAlarm", {}).get("Properties", {})
    if alarm.get("AlarmActions") != ["${AlarmTopic}"]:
        yield "nobody is told that a run failed"
    if schedule["FlexibleTimeWindow"] != {"Mode": "OFF"} or schedule.get("State") == "DISABLED":
        yield "not on time"
    if target["Arn"] != "${Scheduler.Arn}" or target["RoleArn"] != "${ScheduleRole.Arn}":
        yield "runs something else"
    if "Input" in target:
        yield "an input that nobody reads"
    minutes = int(stack.parameters["ScheduleMinutes"])
    unit = "minute" if minutes == 1 else "minutes"
    if schedule["ScheduleExpression"] != f"rate({minutes} {unit})":
        yield f"{schedule['ScheduleExpression']} instead of {minutes} minutes"
    if stack.document["Mappings"]["Schedules"][str(minutes)]["Seconds"] != minutes * 60:
        yield f"{minutes} minutes have other seconds"


@pytest.mark.parametrize("rule", RULES.each())
def test_the_template_keeps_the_rule(rule):
    assert findings(rule, TEMPLATE) == []


@pytest.mark.parametrize(("rule", "path", "value"), RULES.each_change())
def test_the_rule_objects(rule, path, value):
    assert findings(rule, changed(TEMPLATE, path, value)) != []

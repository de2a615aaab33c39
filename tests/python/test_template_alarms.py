"""Alarms that cannot fall silent, a dashboard that shows what is counted, and their page."""

import json
import re

import pytest

from template import GONE, REPOSITORY, Rules, Stack, changed, findings, functions, load

RULES = Rules()
TEMPLATE = load()
NAMESPACE = "Gleaner"
DAY = 24 * 3600
# Whose silence is the alarm. Of everything else silence says that nothing happened.
BREACHING = {"HeartbeatAlarm", "OverdueAlarm", "QuietAlarm"}
# What AWS counts by itself, and by which dimension. Sources: "Available CloudWatch metrics for
# Amazon SQS", "Types of metrics for Lambda functions", "Monitoring metrics for HTTP APIs".
OF_AWS = {
    "AWS/SQS": ("QueueName", {"${Queue.QueueName}", "${DeadLetterQueue.QueueName}"}),
    "AWS/Lambda": (
        "FunctionName",
        {"${Receiver}", "${Worker}", "${Scheduler}", "${Rotator}"},
    ),
    "AWS/ApiGateway": ("ApiId", {"${Api}"}),
}
NAMES_OF_AWS = {
    "AWS/SQS": {
        "ApproximateAgeOfOldestMessage",
        "ApproximateNumberOfMessagesDelayed",
        "ApproximateNumberOfMessagesVisible",
    },
    "AWS/Lambda": {"ConcurrentExecutions", "Duration", "Errors", "Throttles"},
    "AWS/ApiGateway": {"4xx", "5xx", "Count"},
}


def catalogue():
    """What the functions count, from the one place that names it: kind, dimensions, zero told."""
    source = (REPOSITORY / "shared/telemetry/src/catalogue.rs").read_text(encoding="utf-8")
    found = {}
    for section in source.split("catalogue! {")[1:]:
        kind = re.search(r"^    (\w+) \{$", section, re.M)[1]
        rows = r'^        \w+ = "(\w+)",\s*"[^"]*",\s*([^;]+);'
        for name, rest in re.findall(rows, section.split("\n}\n")[0], re.M):
            roles = re.findall(r"Receiver|Worker|Scheduler|Rotator", rest)
            found[name] = {
                "kind": kind,
                "dimensions": ["role", "stack"] if "per_role" in rest else ["stack"],
                # A gauge is told at each run of the scheduler.
                "zero": "with_zero" in rest or (kind == "Gauge" and roles == ["Scheduler"]),
                "roles": roles,
            }
    return found


COUNTED = catalogue()
STATISTICS = {"Counter": {"Sum"}, "Gauge": {"Maximum"}, "Timing": {"p50", "p95", "p99", "Maximum"}}


def alarms(stack):
    return {name: it["Properties"] for name, it in stack.of_type("AWS::CloudWatch::Alarm").items()}


def metrics(alarm):
    """The metrics of an alarm: namespace, name, dimensions, statistic, period."""
    if "Metrics" not in alarm:
        named = {"Namespace": alarm["Namespace"], "MetricName": alarm["MetricName"]}
        named["Dimensions"] = alarm["Dimensions"]
        return [(named, alarm["Statistic"], int(alarm["Period"]))]
    stats = [it["MetricStat"] for it in alarm["Metrics"] if "MetricStat" in it]
    return [(it["Metric"], it["Stat"], int(it["Period"])) for it in stats]


def dimensions(metric):
    return {it["Name"]: it["Value"] for it in metric["Dimensions"]}


def complaint(namespace, name, given, statistic):
    """What is wrong with a metric that somebody looks at."""
    if namespace in OF_AWS:
        dimension, values = OF_AWS[namespace]
        if name not in NAMES_OF_AWS[namespace]:
            return f"AWS does not count {name}"
        if list(given) != [dimension] or given[dimension] not in values:
            return f"{name} of nothing: {given}"
        return None
    if namespace != NAMESPACE:
        return f"nobody writes to {namespace}"
    counted = COUNTED.get(name)
    if counted is None or not counted["roles"]:
        return f"no function counts {name}"
    if given != {"stack": "gleaner"} or counted["dimensions"] != ["stack"]:
        return f"{name} has other dimensions than {given}"
    if statistic not in STATISTICS[counted["kind"]]:
        return f"{statistic} of {name} says nothing"
    return None


@RULES.rule(
    ("HeartbeatAlarm/Properties/TreatMissingData", "notBreaching"),
    ("HeartbeatAlarm/Properties/TreatMissingData", GONE),
    ("OverdueAlarm/Properties/TreatMissingData", "missing"),
    ("QuietAlarm/Properties/TreatMissingData", "ignore"),
    ("DeadLettersAlarm/Properties/TreatMissingData", "breaching"),
    ("RejectedAlarm/Properties/TreatMissingData", GONE),
)
# OB-03: silence is judged on purpose, for each alarm.
def silence_is_judged(stack):
    for name, alarm in alarms(stack).items():
        expected = "breaching" if name in BREACHING else "notBreaching"
        if alarm.get("TreatMissingData") != expected:
            yield f"{name}: {alarm.get('TreatMissingData')}"


@RULES.rule(
    ("HeartbeatAlarm/Properties/MetricName", "tick"),
    ("HeartbeatAlarm/Properties/Namespace", "gleaner"),
    ("HeartbeatAlarm/Properties/Dimensions", []),
    ("HeartbeatAlarm/Properties/Statistic", "Maximum"),
    ("OverdueAlarm/Properties/Statistic", "Sum"),
    ("OverdueAlarm/Properties/MetricName", "queue_age"),
    ("ListsAlarm/Properties/MetricName", "list_pages"),
    ("MissedAlarm/Properties/MetricName", "jobs_expected"),
    ("DeadEntriesAlarm/Properties/MetricName", "entries_dead"),
    ("DeadEntriesAlarm/Properties/MetricName", "jobs_superseded"),
    ("DeadLettersAlarm/Properties/MetricName", "NumberOfMessagesSent"),
    ("DeadLettersAlarm/Properties/Dimensions/0/Value", {"Ref": "DeadLetterQueue"}),
    ("WorkerErrorsAlarm/Properties/Dimensions/0/Value", {"Fn::GetAtt": ["Worker", "Arn"]}),
    ("RejectedAlarm/Properties/Metrics/2/MetricStat/Metric/MetricName", "deliveries"),
)
# OB-03: an alarm that looks at what nobody counts never fires.
def alarms_look_at_what_is_counted(stack):
    for name, alarm in alarms(stack).items():
        for metric, statistic, _ in metrics(alarm):
            namespace, metric_name = metric["Namespace"], metric["MetricName"]
            if said := complaint(namespace, metric_name, dimensions(metric), statistic):
                yield f"{name}: {said}"
            elif namespace == NAMESPACE and not COUNTED[metric_name]["zero"]:
                yield f"{name}: {metric_name} is not told on quiet days"


@RULES.rule(
    ("HeartbeatAlarm/Properties/AlarmActions", GONE),
    ("WorkerErrorsAlarm/Properties/OKActions", []),
    ("QueueAgeAlarm/Properties/ActionsEnabled", False),
    ("AlarmSubscription/Properties/TopicArn", "arn:aws:sns:eu-central-1:123456789012:other"),
    ("AlarmSubscription/Condition", GONE),
    ("AlarmTopic/Properties/KmsMasterKeyId", "alias/aws/sns"),
    ("AlarmTopicPolicy/Properties/PolicyDocument/Statement/0/Principal", "*"),
    ("AlarmTopicPolicy", GONE),
)
def somebody_is_told(stack):
    topic = ["${AlarmTopic}"]
    for name, alarm in alarms(stack).items():
        told = (alarm.get("AlarmActions"), alarm.get("OKActions"))
        if told != (topic, topic) or alarm.get("ActionsEnabled") is False:
            yield f"{name} tells nobody"
    # The key `aws/sns` may not be used by CloudWatch: its alarms would be dropped.
    if stack.properties("AlarmTopic").keys() != {"DisplayName"}:
        yield "the topic may lose alarms"
    allowed = {
        "Sid": "AlarmsOfThisAccount",
        "Effect": "Allow",
        "Principal": {"Service": "cloudwatch.amazonaws.com"},
        "Action": "sns:Publish",
        "Resource": "${AlarmTopic}",
        "Condition": {"StringEquals": {"aws:SourceAccount": "123456789012"}},
    }
    policies = stack.of_type("AWS::SNS::TopicPolicy").values()
    if [it["Properties"]["PolicyDocument"]["Statement"] for it in policies] != [[allowed]]:
        yield "the topic takes no alarms, or anything"
    mail = stack.parameters["AlarmEmail"]
    wanted = [{"Endpoint": mail, "Protocol": "email", "TopicArn": "${AlarmTopic}"}] if mail else []
    given = [it["Properties"] for it in stack.of_type("AWS::SNS::Subscription").values()]
    if given != wanted:
        yield f"subscriptions: {given}"


@RULES.rule(
    ("HeartbeatAlarm/Properties/Period", 300),
    ("HeartbeatAlarm/Properties/EvaluationPeriods", 1),
    ("OverdueAlarm/Properties/Period", 60),
    ("PausedAlarm/Properties/Period", 3_600),
    ("ListsAlarm/Properties/EvaluationPeriods", 1),
    ("MissedAlarm/Properties/Period", 300),
    ("QuietAlarm/Properties/Metrics/1/MetricStat/Period", 300),
    ("QueueAgeAlarm/Properties/DatapointsToAlarm", 4),
    ("DeadLettersAlarm/Properties/Period", 100),
)
def alarms_wait_long_enough_and_not_too_long(stack):
    interval = int(stack.parameters["ScheduleMinutes"]) * 60
    for name, alarm in alarms(stack).items():
        periods = int(alarm["EvaluationPeriods"])
        if int(alarm["DatapointsToAlarm"]) > periods:
            yield f"{name} can never fire"
        for metric, _, period in metrics(alarm):
            # CloudWatch, `PutMetricAlarm`: what it accepts.
            longest = 7 * DAY if period >= 3_600 else DAY
            if period % 60 or periods * period > longest:
                yield f"{name}: CloudWatch refuses {periods} periods of {period} s"
            of_each_run = metric["MetricName"] in (
                "ticks",
                "overdue_age",
                "paused",
                "list_troubles",
            )
            if of_each_run and (period != interval or periods < 3):
                yield f"{name}: a run that is late is no alarm"
            if name in ("MissedAlarm", "QuietAlarm") and period != 3_600:
                yield f"the periods of {name} are no hours"


@RULES.rule(
    *(
        (name, GONE)
        for name, resource in TEMPLATE["Resources"].items()
        if resource["Type"] == "AWS::CloudWatch::Alarm"
    ),
    ("QuietAlarm/Condition", GONE),
    ("MissedAlarm/Condition", GONE),
    ("MissedAlarm/Condition", "HasWebhooks"),
    ("MissedAlarm/Properties/Threshold", 100),
    ("ListsAlarm/Properties/Threshold", 100),
    ("DeadLettersAlarm/Properties/Threshold", 1),
    ("DeadLettersAlarm/Properties/ComparisonOperator", "LessThanThreshold"),
    ("HeartbeatAlarm/Properties/ComparisonOperator", "GreaterThanThreshold"),
    ("OverdueAlarm/Properties/Threshold", 3_600_000),
    ("WorkerErrorsAlarm/Properties/Threshold", 100),
)
# OB-03, SG-06, WK-07: visible dead letters, the oldest age, throttles, no deliveries for hours, jobs
# that only the scheduler found, and deliveries that nothing could be decided about. SC-07: a list
# that is none.
def there_is_an_alarm_for_each_trouble(stack):
    least, more = "GreaterThanOrEqualToThreshold", "GreaterThanThreshold"
    wanted = {
        "HeartbeatAlarm": ("ticks", "LessThanThreshold", 1),
        "OverdueAlarm": ("overdue_age", more, stack.parameters["OverdueSeconds"]),
        "UnavailableAlarm": ("deliveries_unavailable", least, 1),
        "PausedAlarm": ("paused", least, 1),
        "ListsAlarm": ("list_troubles", least, 1),
        "DeadEntriesAlarm": ("jobs_dead", least, 1),
        "AmbiguousAlarm": ("intents_ambiguous", least, 1),
        "UnreadableAlarm": ("rows_unreadable", least, 1),
        "PanicsAlarm": ("tasks_panicked", least, 1),
        "DeadLettersAlarm": ("ApproximateNumberOfMessagesVisible", more, 0),
        "QueueAgeAlarm": (
            "ApproximateAgeOfOldestMessage",
            more,
            stack.parameters["QueueAgeSeconds"],
        ),
        "RejectedAlarm": (None, more, stack.parameters["RejectedPercent"]),
    }
    for function in functions(stack.document):
        wanted[f"{function}ErrorsAlarm"] = ("Errors", least, 1)
        wanted[f"{function}ThrottlesAlarm"] = ("Throttles", least, 1)
    if stack.parameters["Webhooks"] == "on" and stack.parameters["MissedJobs"] != "0":
        wanted["MissedAlarm"] = ("jobs_missed", least, stack.parameters["MissedJobs"])
    if stack.parameters["QuietHours"] != "0":
        wanted["QuietAlarm"] = (None, "LessThanThreshold", 1)
    given = {
        name: (alarm.get("MetricName"), alarm["ComparisonOperator"], alarm["Threshold"])
        for name, alarm in alarms(stack).items()
    }
    if given != wanted:
        yield f"{set(given.items()) ^ set(wanted.items())}"


@RULES.rule(
    ("RejectedAlarm/Properties/Metrics/0/Expression", "rejected / all"),
    ("RejectedAlarm/Properties/Metrics/0/Expression", "IF(all >= 10, 100 * refused / all, 0)"),
    ("RejectedAlarm/Properties/Metrics/1/Expression", "accepted + rejected"),
    ("RejectedAlarm/Properties/Metrics/2/ReturnData", GONE),
    ("QuietAlarm/Properties/Metrics/0/Expression", "accepted - repeated"),
)
# The share of wrong signatures, and that a few of a stranger's are no alarm.
def expressions_say_what_they_mean(stack):
    for name, alarm in alarms(stack).items():
        if "Metrics" not in alarm:
            continue
        returned = [it["Id"] for it in alarm["Metrics"] if it.get("ReturnData", True)]
        if returned != [alarm["Metrics"][0]["Id"]]:
            yield f"{name} watches {returned}"
        for counts, expected in CASES[name]:
            try:
                value = evaluate(alarm["Metrics"], counts)
            except (NameError, ZeroDivisionError) as error:
                yield f"{name}: {error}"
                continue
            if value != expected:
                yield f"{name}: {value} for {counts}"


def delivered(accepted=0, repeated=0, unusable=0, rejected=0):
    return {
        "deliveries_accepted": accepted,
        "deliveries_repeated": repeated,
        "deliveries_unusable": unusable,
        "deliveries_rejected": rejected,
    }


CASES = {
    "RejectedAlarm": [
        (delivered(), 0),
        (delivered(rejected=9), 0),
        (delivered(rejected=10), 100),
        (delivered(accepted=60, repeated=10, unusable=5, rejected=25), 25),
    ],
    "QuietAlarm": [(delivered(), 0), (delivered(repeated=1), 1), (delivered(3, 2), 5)],
}


def evaluate(entries, counts):
    """Does the arithmetic of an alarm, as CloudWatch does it."""
    by_id = {it["Id"]: it for it in entries}

    class Values(dict):
        def __missing__(self, key):
            if key not in by_id:
                raise NameError(key)
            entry = by_id[key]
            if "MetricStat" in entry:
                return counts[entry["MetricStat"]["Metric"]["MetricName"]]
            return value(entry["Expression"])

    def value(expression):
        lazy = re.sub(r"IF\((.+), (.+), (.+)\)", r"((\2) if (\1) else (\3))", expression)
        return eval(lazy, {"__builtins__": {}}, Values())

    return value(entries[0]["Expression"])


def widgets(stack):
    return json.loads(stack.properties("Dashboard")["DashboardBody"])["widgets"]


def test_the_functions_write_to_the_namespace_that_is_looked_at():
    source = (REPOSITORY / "shared/telemetry/src/emf.rs").read_text(encoding="utf-8")
    assert re.search(r'NAMESPACE: &str = "(\w+)";', source)[1] == NAMESPACE
    assert len(COUNTED) > 20
    assert {it["kind"] for it in COUNTED.values()} == {"Counter", "Gauge", "Family", "Timing"}


def test_the_dashboard_shows_what_is_counted():
    for stack in (Stack(TEMPLATE), Stack(TEMPLATE, FunctionUrl="enabled")):
        shown = set()
        for widget in widgets(stack):
            properties = widget["properties"]
            assert properties["region"] == "eu-central-1"
            assert properties["title"]
            for namespace, name, dimension, value, options in properties["metrics"]:
                said = complaint(namespace, name, {dimension: value}, options["stat"])
                # AWS's own are shown by whatever statistic.
                assert said is None, (properties["title"], said)
                assert options["label"]
                shown.add((namespace, name))
        watched = {
            (metric["Namespace"], metric["MetricName"])
            for alarm in alarms(stack).values()
            for metric, _, _ in metrics(alarm)
        }
        assert watched <= shown, "what raises an alarm is on the dashboard"


def test_widgets_do_not_overlap():
    taken = set()
    for widget in widgets(Stack(TEMPLATE)):
        across = range(widget["x"], widget["x"] + widget["width"])
        down = range(widget["y"], widget["y"] + widget["height"])
        cells = {(x, y) for x in across for y in down}
        assert max(across) < 24
        assert not cells & taken, widget["properties"]["title"]
        taken |= cells


@pytest.mark.parametrize("rule", RULES.each())
def test_the_template_keeps_the_rule(rule):
    assert findings(rule, TEMPLATE) == []


@pytest.mark.parametrize(("rule", "path", "value"), RULES.each_change())
def test_the_rule_objects(rule, path, value):
    assert findings(rule, changed(TEMPLATE, path, value)) != []


PAGE = (REPOSITORY / "docs/alarms.md").read_text(encoding="utf-8")


def test_each_alarm_has_its_place_on_the_page():
    told = re.findall(r"^## `([a-z-]+)`(?:, `([a-z-]+)`)?(?:, `([a-z-]+)`)?(?:, `([a-z-]+)`)?$", PAGE, re.M)
    told = [name for names in told for name in names if name]
    named = []
    for alarm in alarms(Stack(TEMPLATE, QuietHours="24")).values():
        slug = alarm["AlarmName"].removeprefix("gleaner-")
        assert alarm["AlarmDescription"].endswith(f" See docs/alarms.md, {slug}.")
        named.append(slug)
    assert sorted(told) == sorted(named)


def test_each_place_says_what_to_look_at_and_what_to_type():
    sections = PAGE.split("\n## `")[1:]
    assert len(sections) >= 10
    for section in sections:
        for part in ("**Means.**", "**Look.**", "**Type.**"):
            assert part in section, (section.splitlines()[0], part)
        assert "```sh\n" in section or "Nothing" in section.split("**Type.**")[1]


# The lines that the functions write.
LINES = "".join(
    source.read_text(encoding="utf-8")
    for source in sorted((REPOSITORY / "shared/telemetry/src/tell").glob("*.rs"))
)


def test_the_page_takes_outputs_and_metrics_that_there_are():
    taken = set(re.findall(r"\$\(output (\w+)\)", PAGE))
    assert taken and taken <= TEMPLATE["Outputs"].keys()
    for phrase in re.findall(r"--filter-pattern '(.+)'", PAGE):
        for line in re.findall(r'"([^"]+)"', phrase):
            assert f'"{line}"' in LINES, f"no line says {line}"
    for name in re.findall(r"\bmetric\s`(\w+)`", PAGE):
        assert name in COUNTED or any(name in names for names in NAMES_OF_AWS.values()), name

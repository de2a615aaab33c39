"""A webhook receiver on AWS Lambda as it is usually written with boto3, to compare with.

Does what functions/receiver does for a new job: the signing secret is read while it starts; a
delivery is verified, its row is written unless it is there, its task is sent, and only then it is
answered with 202.
"""

import base64
import hashlib
import hmac
import json
import os
import time

import boto3
from botocore.exceptions import ClientError

TABLE = os.environ["GLEANER_TABLE"]
QUEUE_URL = os.environ["GLEANER_QUEUE_URL"]

secrets = boto3.client("secretsmanager")
table = boto3.client("dynamodb")
queue = boto3.client("sqs")

secret = secrets.get_secret_value(SecretId=os.environ["GLEANER_WEBHOOK_SECRET_IDS"])
SECRET = secret["SecretString"].encode()


def handler(event, context):
    body = event.get("body") or ""
    body = base64.b64decode(body) if event.get("isBase64Encoded") else body.encode()
    claimed = (event.get("headers") or {}).get("x-webhook-signature", "").removeprefix("sha256=")
    expected = hmac.new(SECRET, body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(claimed.encode(), expected.encode()):
        return {"statusCode": 401}
    delivery = json.loads(body)
    job_id = delivery["data"]["job_id"]
    now = int(time.time())
    try:
        table.put_item(
            TableName=TABLE,
            Item={
                "pk": {"S": f"job#{job_id}"},
                "sk": {"S": "extract"},
                "state": {"S": "received"},
                "delivery_id": {"S": delivery["delivery_id"]},
                "received_at": {"N": str(now)},
            },
            ConditionExpression="attribute_not_exists(pk) OR expires_at <= :now",
            ExpressionAttributeValues={":now": {"N": str(now)}},
        )
    except ClientError as error:
        if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
            raise
        return {"statusCode": 202}
    task = {"event": delivery["event"], "job_id": job_id}
    queue.send_message(QueueUrl=QUEUE_URL, MessageBody=json.dumps(task))
    return {"statusCode": 202}

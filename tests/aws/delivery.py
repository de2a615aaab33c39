"""Deliveries that the tests make themselves, signed as the platform signs."""

import hashlib
import hmac
import json
import uuid

import urllib3

WITHIN = 30
# All signatures so far.
SIGNED = []


def deliver(url, secret):
    """Delivers word of a job that nobody knows, signed with this secret; returns the status."""
    body = json.dumps(
        {
            "event": "extract_completed",
            "webhook_id": str(uuid.uuid4()),
            "delivery_id": str(uuid.uuid4()),
            "timestamp": "2026-11-30T12:00:00Z",
            "data": {"job_id": str(uuid.uuid4()), "status": "completed"},
        }
    ).encode()
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    SIGNED.append(signature)
    headers = {"content-type": "application/json", "x-webhook-signature": f"sha256={signature}"}
    answer = urllib3.request(
        "POST", url, body=body, headers=headers, retries=False, timeout=WITHIN
    )
    return answer.status

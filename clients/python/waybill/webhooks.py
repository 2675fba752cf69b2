"""Checks that a webhook call came from Waybill (Standard Webhooks 1.0.0, https://www.standardwebhooks.com)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Iterable, Mapping
from typing import Any

TOLERANCE_S = 5 * 60
#: The minimum of Standard Webhooks 1.0.0, which requires 24 to 64; with less, calls could be forged.
SECRET_BYTES_MIN = 24


class InvalidWebhook(Exception):
    """The call is not from the service, was changed on its way, or is too old. Answer 400 and ignore the call."""


class InvalidSecret(ValueError):
    """The secret is malformed, perhaps because an environment variable is not set. The call was not verified."""


def verify_webhook(
    body: bytes | str,
    headers: Mapping[str, str],
    secret: str | Iterable[str],
    *,
    tolerance: float = TOLERANCE_S,
    now: float | None = None,
) -> Any:
    """Returns the events of a call: an object, or a list if the endpoint receives several at once.

    ``body``: exactly the bytes that came. ``secret``: ``whsec_…``, or several while one replaces another. A call that
    is repeated has the same ``webhook-id``: remember it, and handle an event once. Raises :class:`InvalidWebhook`, and
    :class:`InvalidSecret` where a secret is empty or malformed.
    """
    keys = [_key(one) for one in ([secret] if isinstance(secret, str) else secret or [])]
    if not keys:
        raise InvalidSecret("no secret was given")
    given = {name.lower(): value for name, value in headers.items()}
    message_id, sent, signatures = (given.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
    if not message_id or not signatures:
        raise InvalidWebhook("the headers webhook-id, webhook-timestamp and webhook-signature are needed")
    if not sent.isascii() or not sent.isdecimal() or len(sent) > 15:
        raise InvalidWebhook("webhook-timestamp is not a time")
    if abs((time.time() if now is None else now) - int(sent)) > tolerance:
        raise InvalidWebhook("webhook-timestamp is too far from now: an old call, or a clock that is wrong")
    content = body.encode() if isinstance(body, str) else body
    signed = f"{message_id}.{sent}.".encode() + content
    wanted = [base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()) for key in keys]
    found = [part[3:].encode() for part in signatures.split() if part.startswith("v1,")]
    # Every pair is compared, in constant time each.
    if not any([hmac.compare_digest(one, other) for one in wanted for other in found]):
        raise InvalidWebhook("no signature fits the body and the secret")
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidWebhook("the body is not JSON") from error


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError, AttributeError):
        key = b""
    if len(key) < SECRET_BYTES_MIN:
        # Without the text itself, which may be most of a secret.
        raise InvalidSecret(f'a secret is "whsec_" and the base64 of at least {SECRET_BYTES_MIN} bytes')
    return key

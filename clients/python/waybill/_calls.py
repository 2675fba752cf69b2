"""How calls are made: requests, repeats, errors and pages. Nothing beyond Python's own library."""

from __future__ import annotations

import http.client
import json
import random
import socket
import ssl
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal
from urllib.parse import quote, urlencode, urlsplit

TIMEOUT_S = 30.0
RETRIES = 3
BACKOFF_S = 0.5
BACKOFF_MAX_S = 8.0
#: A call is not repeated if the service asks for a longer wait.
RETRY_AFTER_MAX_S = 120
#: What proxies answer when they do not know whether the service did what it was asked to do.
PROXY_STATUSES = frozenset({502, 503, 504})

#: Whether a call may be repeated when nobody knows whether its first attempt had an effect.
Repeat = Literal["safe", "with_key", "unsafe"]

_CODES = {
    400: "bad_request",
    401: "unauthorized",
    402: "payment_required",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    409: "conflict",
    413: "too_large",
    415: "unsupported_encoding",
    422: "unprocessable",
    429: "too_many_requests",
    500: "internal_error",
    503: "unavailable",
}


class WaybillError(Exception):
    """A call that failed, after its last attempt.

    ``status``: None if there was no answer. ``code``: in words what the status says; ``no_answer``, ``timeout`` and
    ``bad_answer`` have no answer of the service behind them. ``request_id`` names the request in the service's log.
    ``violations``: why inline HTML was refused, otherwise empty.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int | None = None,
        request_id: str | None = None,
        retry_after: int | None = None,
        violations: list[Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after
        self.violations = violations or []


class Caller:
    """Calls operations, and repeats a call while that may help and cannot do harm. Threads can share one."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        timeout: float = TIMEOUT_S,
        retries: int = RETRIES,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or parts.hostname is None:
            raise ValueError(f"the URL must be http:// or https://, such as https://messages.example.com, not {url!r}")
        self._scheme = parts.scheme
        self._host = parts.hostname
        self._port = parts.port
        self._base = parts.path.rstrip("/")
        self._headers = dict(headers)
        self._timeout = timeout
        self._retries = retries
        self._sleep = sleep
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None

    def _call(
        self,
        method: str,
        path: str,
        *,
        repeat: Repeat,
        path_values: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        idempotency_key: str | None = None,
        raw: bool = False,
        timeout: float | None = None,
    ) -> Any:
        target = self._base + _path_of(path, path_values or {}) + _query_of(query or {})
        headers = dict(self._headers)
        # One key for all attempts: that is what makes a send safe to repeat.
        if repeat == "with_key":
            headers["Idempotency-Key"] = idempotency_key or str(uuid.uuid4())
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
        attempt = 0
        while True:
            try:
                return self._attempt(method, target, headers, data, raw, timeout or self._timeout)
            except WaybillError as error:
                wait = _retry_delay(repeat, error, attempt) if attempt < self._retries else None
                if wait is None:
                    raise
                self._sleep(wait)
                attempt += 1

    def _items(self, page_at: Callable[[Any], Any], member: str) -> Iterator[Any]:
        cursor = None
        while True:
            page = page_at(cursor)
            yield from page[member]
            cursor = page["next_cursor"]
            if not cursor:
                return

    def _attempt(
        self, method: str, target: str, headers: Mapping[str, str], data: bytes | None, raw: bool, timeout: float
    ) -> Any:
        connection: http.client.HTTPConnection
        if self._tls is not None:
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._tls)
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        try:
            connection.request(method, target, body=data, headers=dict(headers))
            response = connection.getresponse()
            content = response.read()
        except socket.timeout as error:
            raise WaybillError(f"no answer within {timeout:g} s", code="timeout") from error
        except (OSError, http.client.HTTPException) as error:
            raise WaybillError(f"no answer: {error}", code="no_answer") from error
        finally:
            connection.close()
        if not 200 <= response.status < 300:
            raise _failure(response, content)
        if raw:
            return content
        if response.status == 204 or not content:
            return None
        value = _json(content)
        if value is _NOT_JSON:
            raise WaybillError(
                "the answer is not JSON: is the URL right?",
                code="bad_answer",
                status=response.status,
                request_id=response.headers.get("X-Request-Id"),
            )
        return value


def _retry_delay(repeat: Repeat, error: WaybillError, attempt: int) -> float | None:
    """Seconds to wait before the call is repeated; None: it must not be, or it would fail again."""
    # The service refuses before it does anything. Its own 503 always names a time; a proxy's may come after it passed
    # the request on.
    refused = error.status == 429 or (error.status == 503 and error.retry_after is not None)
    unknown = error.code in ("no_answer", "timeout") or error.status in PROXY_STATUSES
    if not refused and not (unknown and repeat != "unsafe"):
        return None
    if error.retry_after is not None:
        return None if error.retry_after > RETRY_AFTER_MAX_S else float(error.retry_after)
    backoff: float = min(BACKOFF_MAX_S, BACKOFF_S * 2**attempt)
    return backoff * (0.5 + random.random() / 2)


def _failure(response: http.client.HTTPResponse, content: bytes) -> WaybillError:
    value = _json(content)
    body = value if isinstance(value, dict) else {}
    retry_after = response.headers.get("Retry-After")
    return WaybillError(
        str(body.get("error") or f"the service answered {response.status}"),
        code=_CODES.get(response.status, "http_error"),
        status=response.status,
        request_id=response.headers.get("X-Request-Id"),
        retry_after=int(retry_after) if retry_after is not None and retry_after.isdigit() else None,
        violations=body.get("violations"),
    )


_NOT_JSON = object()


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return _NOT_JSON


def _path_of(path: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        # These would lead to another operation.
        if value in ("", ".", ".."):
            raise ValueError(f"{value!r} cannot be the {name} in {path}")
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    return path


def _query_of(query: Mapping[str, Any]) -> str:
    given = {name: _query_text(value) for name, value in query.items() if value is not None}
    return f"?{urlencode(given)}" if given else ""


def _query_text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)

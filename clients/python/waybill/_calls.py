"""How calls are made: requests, repeats, errors and pages. Uses Python's own library alone."""

from __future__ import annotations

import http.client
import io
import json
import os
import random
import re
import selectors
import socket
import ssl
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, Self
from urllib.parse import quote, urlencode, urlsplit

#: Errors are problems (RFC 9457), which name the member that is wrong; an older service answers with its former bodies.
ACCEPT = "application/json, application/problem+json, */*;q=0.5"
TIMEOUT_S = 30.0
RETRIES = 3
BACKOFF_S = 0.5
BACKOFF_MAX_S = 8.0
#: A call is not repeated if the service requests a longer wait.
RETRY_AFTER_MAX_S = 120
#: Statuses that leave the effect of a call unknown: the service's own failure, and proxies' codes for a missing answer.
UNKNOWN_STATUSES = frozenset({500, 502, 503, 504, 520, 521, 522, 523, 524})
#: Connections that wait for their next call.
IDLE_MAX = 10
#: Servers close connections that are idle for a while; a call on such a connection would fail.
IDLE_S = 4.0

#: Whether a call may be repeated when the effect of its first attempt is unknown.
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

    ``status``: None if there was no answer. ``code``: the status in words; ``no_answer``, ``timeout``, ``bad_answer`` and
    ``redirected`` mean that there is no valid answer from the service. ``reason``: the service's own code for the refusal,
    more specific, such as ``domain_not_verified``. The reference lists them; later releases have more. ``param``: the member
    or parameter that is wrong. Either is None if the service gave none. ``request_id`` names the request in the service's
    log. ``violations``: why inline HTML was refused, otherwise empty. ``idempotency_key``: the key of a send, also one that
    the client generated: with it and the same body, the send can be repeated safely.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        reason: str | None = None,
        param: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
        retry_after: int | None = None,
        violations: list[Any] | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.param = param
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after
        self.violations = violations or []
        self.idempotency_key = idempotency_key


class Caller:
    """Calls operations, and repeats a call while that may help and is safe. Threads can share one."""

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
        for value in headers.values():
            # Never in the message: it may be most of a key.
            if not re.fullmatch(r"[!-~]+( [!-~]+)?", value):
                raise ValueError("a key is printable ASCII without blanks; this one is not")
        self._host = parts.hostname
        # Always passed: without it, the end of an IPv6 address would be taken for a port.
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._base = parts.path.rstrip("/")
        self._headers = dict(headers)
        self._timeout = timeout
        self._retries = retries
        self._sleep = sleep
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        # Adding and removing are atomic.
        self._idle: deque[_Connection] = deque()

    def close(self) -> None:
        """Closes the connections that wait for their next call. The client can be used again."""
        while self._idle:
            self._idle.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # Its constructor may have failed.
        for connection in getattr(self, "_idle", ()):
            connection.close()

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
        headers = {**self._headers, "Accept": ACCEPT}
        # One key for all attempts makes a send safe to repeat.
        if repeat == "with_key":
            if idempotency_key is None:
                idempotency_key = str(uuid.uuid4())
            elif not re.fullmatch(r"[ -~]{1,255}", idempotency_key):
                raise ValueError("an idempotency_key is 1 to 255 printable ASCII characters; leave it out for one of its own")
            headers["Idempotency-Key"] = idempotency_key
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
                    error.idempotency_key = idempotency_key
                    raise
                self._sleep(wait)
                attempt += 1

    def _items(self, page_at: Callable[[Any], Any], member: str) -> Iterator[Any]:
        cursor = None
        while True:
            page = page_at(cursor)
            if not isinstance(page, dict) or not isinstance(page.get(member), list):
                raise WaybillError(f"the answer is no list of {member}: is the URL right?", code="bad_answer")
            yield from page[member]
            cursor = page.get("next_cursor")
            if not cursor:
                return

    def _attempt(
        self, method: str, target: str, headers: Mapping[str, str], data: bytes | None, raw: bool, timeout: float
    ) -> Any:
        connection = self._connection()
        try:
            response, content = connection.exchange(method, target, data, headers, timeout)
        except TimeoutError as error:
            connection.close()
            raise WaybillError(f"no answer within {timeout:g} s", code="timeout") from error
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise WaybillError(f"no answer: {error}", code="no_answer") from error
        except BaseException:
            connection.close()
            raise
        self._keep(connection)
        if 300 <= response.status < 400:
            where = (response.headers.get("Location") or "elsewhere")[:200]
            raise WaybillError(
                f"the answer is a redirect to {where}, which is not followed: is the URL right?",
                code="redirected",
                status=response.status,
            )
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


    def _connection(self) -> _Connection:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return _Connection(self._host, self._port, self._tls)
            if connection.is_usable():
                return connection
            connection.close()

    def _keep(self, connection: _Connection) -> None:
        if len(self._idle) < IDLE_MAX:
            connection.idle_since = time.monotonic()
            self._idle.append(connection)
        else:
            connection.close()


class _Connection:
    """A connection that one call at a time uses. Each exchange ends at its time, however slowly its bytes come."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        self.idle_since = 0.0
        self._process = os.getpid()
        self._deadline = 0.0
        self._http: http.client.HTTPConnection = (
            http.client.HTTPConnection(host, port)
            if tls is None
            else http.client.HTTPSConnection(host, port, context=tls)
        )
        self._http.response_class = self._response  # type: ignore[assignment]

    def close(self) -> None:
        self._http.close()

    def is_usable(self) -> bool:
        """Whether it is open, and was not opened by a process that this one was forked from."""
        sock = self._http.sock
        if sock is None or self._process != os.getpid() or time.monotonic() - self.idle_since > IDLE_S:
            return False
        # A closed connection becomes readable, and so does one with unexpected bytes.
        with selectors.DefaultSelector() as selector:
            selector.register(sock, selectors.EVENT_READ)
            return not selector.select(0)

    def exchange(
        self, method: str, target: str, data: bytes | None, headers: Mapping[str, str], timeout: float
    ) -> tuple[http.client.HTTPResponse, bytes]:
        self._deadline = time.monotonic() + timeout
        self._http.timeout = timeout
        if self._http.sock is not None:
            self._http.sock.settimeout(timeout)
        self._http.request(method, target, body=data, headers=dict(headers))
        response = self._http.getresponse()
        return response, response.read()

    def left(self) -> float:
        """Returns the seconds left. Raises TimeoutError if there are none."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _response(self, sock: socket.socket, *args: Any, **options: Any) -> http.client.HTTPResponse:
        response = http.client.HTTPResponse(sock, *args, **options)
        response.fp = io.BufferedReader(_Bytes(response.fp.detach(), sock, self.left))
        return response


class _Bytes(io.RawIOBase):
    """Reads a socket until a deadline; the socket's own time-out would begin anew with each byte."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, left: Callable[[], float]) -> None:
        self._raw = raw
        self._sock = sock
        self._left = left

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(self._left())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _retry_delay(repeat: Repeat, error: WaybillError, attempt: int) -> float | None:
    """Returns the seconds before the next attempt; None: the call must not be repeated, or would fail again."""
    # The service refuses before it does anything. Its own 503 always names a time; a proxy's may come after it passed
    # the request on.
    refused = error.status == 429 or (error.status == 503 and error.retry_after is not None)
    unknown = error.code in ("no_answer", "timeout") or error.status in UNKNOWN_STATUSES
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
        str(body.get("detail") or body.get("error") or f"the service answered {response.status}"),
        code=_CODES.get(response.status, "http_error"),
        reason=response.headers.get("X-Error-Code"),
        param=param if isinstance(param := body.get("param"), str) else None,
        status=response.status,
        request_id=response.headers.get("X-Request-Id"),
        retry_after=int(retry_after) if retry_after is not None and re.fullmatch("[0-9]{1,9}", retry_after) else None,
        violations=violations if isinstance(violations := body.get("violations"), list) else None,
    )


_NOT_JSON = object()


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return _NOT_JSON


def _path_of(path: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        # These would change the path to another operation's.
        if value in ("", ".", ".."):
            raise ValueError(f"{value!r} cannot be the {name} in {path}")
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    return path


def _query_of(query: Mapping[str, Any]) -> str:
    given = {name: _query_text(value) for name, value in query.items() if value is not None}
    return f"?{urlencode(given)}" if given else ""


def _query_text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)

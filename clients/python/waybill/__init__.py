"""Sends e-mail, WhatsApp messages and wallet passes through Waybill."""

from __future__ import annotations

import time
from collections.abc import Callable

from ._calls import RETRIES, TIMEOUT_S, WaybillError
from ._operations import *  # noqa: F403 -- the types of all calls
from ._operations import GroupedOperations, Job
from .webhooks import InvalidSecret, InvalidWebhook, verify_webhook

__all__ = ["InvalidSecret", "InvalidWebhook", "Waybill", "WaybillError", "verify_webhook"]

WAIT_S = 60.0
_POLL_S = 0.25
_POLL_MAX_S = 4.0


class Waybill(GroupedOperations):
    """A tenant's calls. Every call raises :class:`WaybillError`. Connections are kept for the next call: use it as a
    context manager, or :meth:`close` it.

    ``api_key``: keep it on servers, because who has it can send in the tenant's name. ``timeout``: seconds that one
    attempt may take. ``retries``: how often a call is repeated, beside the first attempt.
    """

    def __init__(
        self,
        url: str,
        api_key: str,
        *,
        timeout: float = TIMEOUT_S,
        retries: int = RETRIES,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(url, {"X-API-Key": api_key}, timeout=timeout, retries=retries, sleep=sleep)
        self._group()

    def wait_job(self, id: str, *, within: float = WAIT_S) -> Job:
        """Waits for the job's end and returns the job, whatever its outcome. Raises with the code ``timeout`` after ``within`` s."""
        late_at = time.monotonic() + within
        waited, pause = 0.0, _POLL_S
        status = "not known"
        while True:
            left = min(late_at - time.monotonic(), within - waited)
            try:
                job = self.get_job(id, timeout=max(0.001, min(left, self._timeout)))
            except WaybillError as error:
                if error.code != "timeout" or time.monotonic() < late_at:
                    raise
                raise WaybillError(f"job {id} is {status} after {within:g} s", code="timeout") from error
            if "result" in job:
                return job
            status = job["status"]
            if min(late_at - time.monotonic(), within - waited) <= 0:
                raise WaybillError(f"job {id} is {status} after {within:g} s", code="timeout")
            wait = min(pause, within - waited)
            self._sleep(wait)
            waited += wait
            pause = min(_POLL_MAX_S, pause * 2)

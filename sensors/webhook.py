"""Posts a notice to a webhook, whose URL is a secret: whoever knows it may post."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_fixed

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.errors import PinotAssetsError

URL_VARIABLE = "PINOT_ASSETS_WEBHOOK_URL"
TIMEOUT = httpx.Timeout(10.0, connect=5.0)
ATTEMPTS = 2
"""In one tick; the next tick goes on."""

_JSON = {"Content-Type": "application/json"}
_NEVER_TAKEN = frozenset({400, 413, 415, 422})
"""Answers that say something of the notice, and not of the webhook or of this moment."""


class NoticeRefused(PinotAssetsError):
    """The webhook is up and will never take this notice."""


class _Unanswered(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where notices go."""

    url: str = field(repr=False)

    def post(self, notice: JsonMapping) -> None:
        """Deliver one notice as JSON.

        :raises NoticeRefused: it will never be taken.
        :raises PinotAssetsError: it was not taken now. Neither error names the URL.
        """
        body = json.dumps(notice, allow_nan=False)  # ASCII: paths may hold bytes that are no UTF-8
        try:
            for attempt in Retrying(
                stop=stop_after_attempt(ATTEMPTS),
                wait=wait_fixed(1),
                retry=retry_if_exception_type(_Unanswered),
                reraise=True,
            ):
                with attempt:
                    status = self._post(body)
        except _Unanswered as error:
            why = str(error)
        else:
            if 200 <= status < 300:
                return
            why = f"it answered {status}"
            if status in _NEVER_TAKEN:
                raise NoticeRefused("the webhook refused a notice", why=why)
        # Outside of the handler: httpx names the URL in some of its errors, and Dagster shows the causes.
        raise PinotAssetsError(
            "the webhook did not take a notice, which is kept",
            why=why,
            hint=f"check {URL_VARIABLE}; the next tick tries again",
        )

    def _post(self, notice: str) -> int:
        """Its answer.

        :raises _Unanswered: none, or one that says to come back later.
        """
        try:
            with (
                _unlogged(),
                httpx.Client(timeout=TIMEOUT) as client,
                # Its body says nothing that is made use of, so none of it is read.
                client.stream("POST", self.url, content=notice, headers=_JSON) as answer,
            ):
                status = answer.status_code
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _Unanswered(type(error).__name__) from None
        if status in (408, 429) or status >= 500:
            raise _Unanswered(f"it answered {status}")
        return status


@contextmanager
def _unlogged() -> Iterator[None]:
    """Httpx logs every request with its URL, at INFO."""
    logger = logging.getLogger("httpx")

    def quiet(_: logging.LogRecord) -> bool:
        return False

    logger.addFilter(quiet)
    try:
        yield
    finally:
        logger.removeFilter(quiet)

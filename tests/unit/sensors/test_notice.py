"""Delivery of a notice, and that nobody ever reads the URL."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator

import pytest
from fakes.monitoring.webhook import SECRET, Hook, webhook
from tenacity import wait_none

from pinot_assets.errors import PinotAssetsError
from pinot_assets.sensors import notice as module
from pinot_assets.sensors.notice import NoticeRefused, Webhook

NOTICE = {"table": "flights", "rows": 3}
NOBODY = f"http://127.0.0.1:1/services/{SECRET}"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "wait_fixed", lambda _: wait_none())


@pytest.fixture
def hook() -> Iterator[Hook]:
    with webhook() as hook:
        yield hook


def test_a_notice_arrives_as_json(hook: Hook) -> None:
    Webhook(hook.url).post(NOTICE)
    assert hook.posted == [NOTICE]


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_webhook_that_is_busy_is_asked_again(hook: Hook, status: int) -> None:
    hook.statuses = [status]
    Webhook(hook.url).post(NOTICE)
    assert hook.posted == [NOTICE]


@pytest.mark.parametrize("status", [301, 401, 403, 404, 503])
def test_what_is_not_taken_is_an_error(hook: Hook, status: int) -> None:
    hook.statuses = [status] * module.ATTEMPTS
    with pytest.raises(PinotAssetsError, match=f"it answered {status}") as caught:
        Webhook(hook.url).post(NOTICE)
    assert not isinstance(caught.value, NoticeRefused)
    assert hook.posted == []


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_notice_that_will_never_be_taken_is_told_apart(hook: Hook, status: int) -> None:
    hook.statuses = [status]
    with pytest.raises(NoticeRefused):
        Webhook(hook.url).post(NOTICE)


@pytest.mark.parametrize("url", [NOBODY, f"ftp://host/{SECRET}", f"http://[{SECRET}", f"http://a b/{SECRET}"])
def test_an_error_does_not_name_the_url(url: str) -> None:
    with pytest.raises(PinotAssetsError) as caught:
        Webhook(url).post(NOTICE)
    shown = "".join(traceback.format_exception(caught.value)) + repr(Webhook(url))
    assert "PINOT_ASSETS_WEBHOOK_URL" in shown
    assert SECRET not in shown


@pytest.mark.parametrize("status", [200, 301, 500])
def test_no_log_names_the_url(hook: Hook, status: int, caplog: pytest.LogCaptureFixture) -> None:
    hook.statuses = [status] * module.ATTEMPTS
    with caplog.at_level(logging.DEBUG, "httpx"):
        try:
            Webhook(hook.url).post(NOTICE)
        except PinotAssetsError:
            assert status != 200
    assert SECRET not in caplog.text
    logging.getLogger("httpx").info("others may still speak")

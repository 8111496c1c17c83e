from __future__ import annotations

import pickle
import ssl
from pathlib import Path

import pytest

from pinot_assets.errors import PinotAssetsError, SpecError
from pinot_assets.pinot import BasicAuth, PinotConnection, Timeouts, Tls, TokenAuth

URL = "http://127.0.0.1:9000"


def test_secrets_do_not_show() -> None:
    for auth in (BasicAuth("ada", "s3cret"), TokenAuth("s3cret"), TokenAuth("Basic s3cret")):
        assert "s3cret" not in repr(PinotConnection(URL, auth=auth))


def test_redacting_knows_every_form_of_a_secret() -> None:
    basic = PinotConnection(URL, auth=BasicAuth("ada", "s3cret"))
    assert basic.redact("YWRhOnMzY3JldA== s3cret") == "*** ***"
    token = PinotConnection(URL, auth=TokenAuth("Basic abc123"))
    assert token.redact("got abc123 and Basic abc123") == "got *** and ***"
    assert PinotConnection(URL).redact("nothing to hide") == "nothing to hide"


@pytest.mark.parametrize(
    ("auth", "header"),
    [
        (BasicAuth("ada", "s3cret"), "Basic YWRhOnMzY3JldA=="),
        (BasicAuth("ada", "pä:ss"), "Basic YWRhOnDDpDpzcw=="),
        (TokenAuth("abc"), "Bearer abc"),
        (TokenAuth("Basic abc"), "Basic abc"),
    ],
)
def test_header(auth: BasicAuth | TokenAuth, header: str) -> None:
    assert auth.header == header


def test_credentials_in_an_address_are_refused_without_telling_them() -> None:
    with pytest.raises(SpecError) as caught:
        PinotConnection("http://ada:s3cret@pinot:9000")
    assert "s3cret" not in str(caught.value)
    assert "PINOT_PASSWORD" in str(caught.value)


@pytest.mark.parametrize("url", ["pinot:9000", "", "ftp://pinot", "http://"])
def test_what_is_not_an_http_address_is_refused(url: str) -> None:
    with pytest.raises(PinotAssetsError, match="not an http address"):
        PinotConnection(url)
    with pytest.raises(PinotAssetsError, match="not an http address"):
        PinotConnection(URL, broker_urls=(url,))


def test_a_connection_travels_to_another_process() -> None:
    connection = PinotConnection(
        "https://pinot:9443", auth=BasicAuth("ada", "s3cret"), tls=Tls(verify=False), broker_urls=(URL,)
    )
    assert pickle.loads(pickle.dumps(connection)) == connection


def test_the_longest_write_is_what_a_new_lease_holder_waits_for() -> None:
    assert Timeouts(call=8, upload=20, end=30).longest_write == 30
    # kazoo's default session and the project's own must not be shorter than an ordinary call.
    assert Timeouts().call < 10


def test_tls_verifies_unless_told_otherwise(certificate: tuple[Path, Path]) -> None:
    context = Tls(ca_bundle=str(certificate[0])).context()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert len(context.get_ca_certs()) == 1
    context = Tls(verify=False).context()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_NONE, False)


@pytest.mark.parametrize("tls", [Tls(ca_bundle="/no/such.pem"), Tls(client_cert="/no/such.pem")])
def test_missing_tls_files_are_named(tls: Tls) -> None:
    with pytest.raises(SpecError, match=r"/no/such\.pem"):
        tls.context()


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://h:x", "http://h:99999", "http://a..b:1", f"http://{'a' * 64}:1"]
)
def test_an_address_that_cannot_be_read_is_not_quoted(url: str) -> None:
    """It may hold credentials."""
    with pytest.raises(PinotAssetsError, match="cannot be read") as raised:
        PinotConnection(url)
    assert url not in str(raised.value)
    with pytest.raises(PinotAssetsError, match="cannot be read"):
        PinotConnection("http://h:9000", broker_urls=(url,))

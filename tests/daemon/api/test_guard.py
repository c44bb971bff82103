"""Who may ask over TCP."""

import pytest
from autoresearch_daemon.api.listen import LOOPBACK_NAMES, Rules, objection

RULES = Rules(token="secret")
GOOD = {"host": "127.0.0.1:8100", "origin": None, "authorization": "Bearer secret", "rules": RULES, "port": 8100}
MIRROR = Rules(LOOPBACK_NAMES | {"mirror.example"}, "secret", pages_only=True)


def test_the_holder_of_the_token_may_ask():
    assert objection(**GOOD) is None
    assert objection(**GOOD | {"host": "localhost:8100", "origin": "http://localhost:8100"}) is None
    assert objection(**GOOD | {"host": "127.0.0.1", "port": 80}) is None


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer secre",
        "Bearer secret2",
        "Bearer sëcret",
        "Bearer \udcffsecret",
        "Basic secret",
        "secret",
        "Bearer  secret",
    ],
)
def test_a_wrong_token_is_refused(authorization):
    status, sentence = objection(**GOOD | {"authorization": authorization})
    assert status == 401
    assert "secret" not in sentence


@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer "])
def test_an_empty_token_admits_nobody(authorization):
    assert objection(**GOOD | {"rules": Rules(), "authorization": authorization})[0] == 401


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example:8100",
        "127.0.0.1:8101",
        "127.0.0.1",
        "127.0.0.1.evil.example:8100",
        "[::1",
        "0.0.0.0:8100",
        "127.0.0.1:99999",
        "127.0.0.1:x",
        "evil.example@127.0.0.1:8101",
        "a b:8100",
    ],
)
def test_a_name_bound_to_this_host_is_refused(host):
    assert objection(**GOOD | {"host": host})[0] == 403
    assert objection(**GOOD | {"host": host}, page=True)[0] == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "", "https://127.0.0.1:8100", "http://127.0.0.1:3000", "file://"]
)
def test_a_page_of_another_origin_is_refused_even_with_the_token(origin):
    assert objection(**GOOD | {"origin": origin})[0] == 403
    assert objection(**GOOD | {"origin": origin}, page=True)[0] == 403


def test_pages_are_read_without_the_token():
    assert objection(**GOOD | {"authorization": ""}, page=True) is None


def test_a_mirror_shows_pages_under_its_names_and_answers_nothing_else():
    request = GOOD | {"rules": MIRROR, "host": "mirror.example"}
    assert objection(**request, page=True) is None
    assert objection(**request | {"origin": "https://mirror.example"}, page=True) is None
    assert objection(**request)[0] == 403
    assert objection(**request | {"host": "other.example"}, page=True)[0] == 403

"""Which spellings are one mailbox, what is refused, and what a tag says."""

import string
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.errors import Refused, UsageError
from autoresearch.record.record import DEFAULT_NETWORK, Network
from autoresearch.trust.mailbox import Mailbox, deliverable, domain_tag, mail_tag, mailbox

CHEAP = Network(name="test", tag_memory_bytes=8192, tag_passes=1)


@pytest.mark.parametrize(
    ("spelling", "same"),
    [
        ("You@Example.ORG", "you@example.org"),
        ("  you@example.org ", "you@example.org"),
        ("you+autoresearch@example.org", "you@example.org"),
        ("you+a+b@example.org", "you@example.org"),
        ("y.o.u@gmail.com", "you@gmail.com"),
        ("y.ou+x@googlemail.com", "you@gmail.com"),
        ("you-spam@yahoo.com", "you@yahoo.com"),
        ("you@ymail.com", "you@yahoo.com"),
        ("you@pm.me", "you@proton.me"),
        ("y_o-u.@protonmail.com".replace("u.", "u"), "you@proton.me"),
        ("you@me.com", "you@icloud.com"),
        ("you.there@yandex.com", "you-there@ya.ru"),
        ("you@bücher.example", "you@xn--bcher-kva.example"),
        ("you@EXAMPLE.org.", "you@example.org"),
    ],
)
def test_spellings_of_one_mailbox_are_one(spelling, same):
    assert mailbox(spelling) == mailbox(same)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("y.ou@example.org", "you@example.org"),
        ("you-x@example.org", "you@example.org"),
        ("you@example.org", "you@example.com"),
        ("you@gmail.com", "you@yahoo.com"),
    ],
)
def test_mailboxes_that_differ_stay_apart(first, second):
    assert mailbox(first) != mailbox(second)


NO_ADDRESSES = """
|you|@example.org|you@|you@localhost|a b@example.org|you@exa mple.org|+x@example.org|you@[192.0.2.1]|you@192.0.2.1
|"a b"@example.org|you..x@example.org|.you@example.org|you@-x.org|you@x..org|jös@example.org|<you@example.org>
"""


@pytest.mark.parametrize(
    "text",
    [
        *NO_ADDRESSES.replace("\n", "").split("|"),
        "a@b\nBcc: c@example.org",
        "\u212aate@example.org",  # the Kelvin sign, a k in lower case
        "=?utf-8?q?you?=@gmail.com",
        "=?utf-8?b?eW91?=@gmail.com",
        "=?utf-8?q?victim=40y.org=2ca?=@example.org",
        "you\n@example.org",
        "you@example.org\nBcc: x@y.org",
        "x" * 65 + "@example.org",
        "you@" + "a" * 250 + ".org",
    ],
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(UsageError):
        mailbox(text)


@pytest.mark.parametrize("address", ["x@mailinator.com", "x@deep.mailinator.com", "x@YOPMAIL.com"])
def test_throw_away_mailboxes_are_refused(address):
    with pytest.raises(Refused):
        mailbox(address)


def test_an_attestor_chooses_which_domains_are_throw_away():
    assert mailbox("x@mailinator.com", disposable=frozenset()) == Mailbox("x", "mailinator.com")
    with pytest.raises(Refused):
        mailbox("x@example.org", disposable=frozenset({"example.org"}))


def test_a_tag_is_one_for_a_mailbox_a_network_and_a_cost():
    tag = mail_tag(mailbox("y.ou+x@googlemail.com"), CHEAP)
    assert tag == mail_tag(mailbox("you@gmail.com"), CHEAP)
    others = [
        mail_tag(mailbox("me@gmail.com"), CHEAP),
        mail_tag(mailbox("you@gmail.com"), replace(CHEAP, nonce=b"m" * 16)),
        mail_tag(mailbox("you@gmail.com"), replace(CHEAP, tag_passes=2)),
        domain_tag(mailbox("you@gmail.com"), CHEAP),
    ]
    assert len({tag, *others}) == 5
    assert len(tag) == 32


@pytest.mark.parametrize(
    ("address", "site"),
    [
        ("you@example.org", "example.org"),
        ("you@a.example.org", "example.org"),
        ("you@a.b.example.org", "example.org"),
        ("you@a.shop.co.uk", "shop.co.uk"),
        ("you@cs.uni.ac.jp", "uni.ac.jp"),
        ("you@co.uk", "co.uk"),
        ("you@a.co.de", "co.de"),  # which is nobody's but its owner's
    ],
)
def test_all_below_a_domain_that_somebody_owns_is_one_domain(address, site):
    assert mailbox(address).site == site
    assert domain_tag(mailbox(address), CHEAP) == domain_tag(mailbox(f"me@{site}"), CHEAP)
    assert mail_tag(mailbox(address), CHEAP) != mail_tag(mailbox(f"me@{site}"), CHEAP)


@pytest.mark.parametrize("domain", ["gmail.com", "googlemail.com", "yahoo.co.uk", "hotmail.fr", "outlook.de", "gmx.ch"])
def test_a_provider_that_serves_everybody_does_so_under_its_names_in_other_countries(domain):
    assert mailbox(f"you@{domain}").is_big
    assert not mailbox(f"you@{domain.partition('.')[0]}.example").is_big  # which anybody may own


def test_tags_stay_what_they_are():
    """A changed tag would split every voter in two: the parameters of the built-in network never move."""
    assert (DEFAULT_NETWORK.tag_memory_bytes, DEFAULT_NETWORK.tag_passes) == (67_108_864, 3)


def test_a_mail_goes_where_the_person_typed():
    assert deliverable(" Y.ou+notes@Bücher.example ") == "Y.ou+notes@xn--bcher-kva.example"


@given(st.text(string.ascii_lowercase + string.digits + ".-_+", min_size=1, max_size=20))
def test_normalising_twice_is_normalising_once(local):
    for domain in ("gmail.com", "yahoo.com", "proton.me", "ya.ru", "example.org"):
        try:
            once = mailbox(f"{local}@{domain}")
        except UsageError:
            continue
        assert mailbox(f"{once.local}@{once.domain}") == once

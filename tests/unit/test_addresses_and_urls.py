"""Preferred loopback addresses, and the URLs of databases."""

from __future__ import annotations

from itertools import islice

import pytest

from corral.decide.addresses import SIZE, address_at, addresses
from corral.decide.database_urls import database_url, schema_url, sqlite_url
from corral.errors import ConfigurationError


def test_the_pool_of_addresses_ends_where_it_says() -> None:
    assert address_at(0) == "127.1.0.1"
    assert address_at(SIZE - 1) == "127.254.254.254"


def test_the_preferred_address_is_the_same_in_every_process_and_differs_by_worktree() -> None:
    first = next(addresses("repo", "one"))
    assert first == next(addresses("repo", "one")) == "127.250.10.22"
    assert first != next(addresses("repo", "two"))


def test_addresses_do_not_repeat_and_stay_in_the_pool() -> None:
    some = list(islice(addresses("r", "w"), 1000))
    assert len(set(some)) == 1000
    for address in some:
        first, second, third, fourth = map(int, address.split("."))
        assert first == 127
        assert 1 <= second <= 254
        assert 0 <= third <= 254
        assert 1 <= fourth <= 254


def test_an_sqlite_url_has_four_slashes() -> None:
    assert sqlite_url("/a b/c.sqlite3") == "sqlite:////a b/c.sqlite3"


@pytest.mark.parametrize("path", ["/a?b", "/a#b", "/a%20b"])
def test_a_path_that_a_url_cannot_carry_is_refused(path: str) -> None:
    with pytest.raises(ConfigurationError, match="CORRAL_STATE_DIR"):
        sqlite_url(path)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://h/d", "postgresql://h/d?options=-csearch_path%3Ds"),
        ("postgres://u:p@h:1/d?x=y", "postgres://u:p@h:1/d?x=y&options=-csearch_path%3Ds"),
        ("postgresql+psycopg://h", "postgresql+psycopg://h?options=-csearch_path%3Ds"),
    ],
)
def test_a_schema_goes_into_the_search_path(url: str, expected: str) -> None:
    assert schema_url(url, "s") == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://h/d", "postgresql://h/n"),
        ("postgresql://u:p@h:1/d?x=y", "postgresql://u:p@h:1/n?x=y"),
        ("postgresql://h", "postgresql://h/n"),
        ("postgresql:///d?host=/tmp", "postgresql:///n?host=/tmp"),
    ],
)
def test_a_database_replaces_the_one_that_the_url_names(url: str, expected: str) -> None:
    assert database_url(url, "n") == expected


@pytest.mark.parametrize("url", ["", "mysql://h/d", "h/d", "sqlite:///x"])
def test_another_server_than_postgresql_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"database\.url"):
        schema_url(url, "s")

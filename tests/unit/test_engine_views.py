from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.backends.engine import views
from corral.backends.engine.instants import instant
from corral.backends.engine.states import EngineError
from corral.errors import EnumerationError

# As Docker 20.10 answers (shortened), with fields that nobody here asks for.
CONTAINER: dict[str, Any] = {
    "Id": "402b17ec",
    "Names": ["/web", "/other/alias"],
    "Image": "busybox",
    "ImageID": "sha256:e4",
    "Created": 1796079057,
    "Ports": [
        {"IP": "127.0.0.1", "PrivatePort": 8080, "PublicPort": 32768, "Type": "tcp"},
        {"PrivatePort": 9090, "Type": "tcp"},
    ],
    "Labels": {"corral.owner": "o1"},
    "State": "Running",
    "HostConfig": {"NetworkMode": "default"},
    "Mounts": [
        {"Type": "bind", "Source": "/srv", "Destination": "/b"},
        {"Type": "volume", "Name": "a" * 64, "Source": "", "Driver": "local"},
        {"Type": "volume", "Name": "data", "Source": "/var/lib/docker/volumes/data/_data"},
    ],
}


def test_a_container_is_read_with_all_that_counts() -> None:
    (seen,) = views.containers([CONTAINER])
    assert (seen.id, seen.name, seen.image, seen.image_name) == (
        "402b17ec", "web", "sha256:e4", "busybox",
    )  # fmt: skip
    assert (seen.state, seen.created) == ("running", 1796079057.0)
    assert seen.labels == {"corral.owner": "o1"}
    assert seen.ports == (32768,)
    assert [(m.kind, m.name[:5], m.anonymous) for m in seen.mounts] == [
        ("bind", "", False),
        ("volume", "aaaaa", True),
        ("volume", "data", False),
    ]


def test_what_an_engine_leaves_out_is_empty() -> None:
    (seen,) = views.containers([{"Id": "402b17ec9d61ff", "Created": 1, "Names": None}])
    assert (seen.name, seen.labels, seen.state) == ("402b17ec9d61", {}, "unknown")
    assert (seen.mounts, seen.ports, seen.image) == ((), (), "")
    assert views.containers(None) == ()
    assert views.networks([]) == ()
    assert views.volumes({"Volumes": None, "Warnings": None}) == ()
    assert views.image_labels({"Config": None}) == {}
    assert views.image_labels({"Config": {"Labels": {"a": "b"}}}) == {"a": "b"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"Id": None},
        {"Id": ""},
        {"Id": 7},
        {"Created": None},
        {"Created": "yesterday"},
        {"Created": True},
        {"Labels": []},
        {"Labels": {"a": 1}},
        {"Labels": {"a": None}},
        {"Names": "web"},
        {"Mounts": {}},
        {"Mounts": ["x"]},
        {"Ports": [{"PublicPort": "80"}]},
        {"State": 3},
    ],
)
def test_a_container_that_cannot_be_understood_is_a_failed_look(wrong: dict[str, Any]) -> None:
    with pytest.raises(EnumerationError):
        views.containers([{**CONTAINER, **wrong}])


@pytest.mark.parametrize("answer", [{}, "text", 3, [[]], ["x"], [None]])
def test_what_is_no_list_of_containers_is_a_failed_look(answer: object) -> None:
    with pytest.raises(EngineError):
        views.containers(answer)


@pytest.mark.parametrize("answer", [None, [], "x", {"Volumes": {}}, {"Volumes": [{"Name": ""}]}])
def test_what_is_no_list_of_volumes_is_a_failed_look(answer: object) -> None:
    with pytest.raises(EngineError):
        views.volumes(answer)


def test_networks_and_volumes_say_when_they_were_made() -> None:
    (network,) = views.networks(
        [{"Id": "n1", "Name": "net", "Created": "2026-11-30T22:50:44.5Z", "Labels": None}]
    )
    assert (network.stamp, network.created) == ("2026-11-30T22:50:44.5Z", 1796079044.5)
    assert not network.built_in
    (volume,) = views.volumes(
        {
            "Volumes": [
                {"Name": "data", "CreatedAt": "2026-11-30T23:50:44+01:00", "Mountpoint": "/m"}
            ]
        }
    )
    assert (volume.created, volume.anonymous, volume.mountpoint) == (1796079044.0, False, "/m")


def test_a_network_without_a_date_has_no_known_age() -> None:
    (network,) = views.networks([{"Id": "n1", "Name": "bridge"}])
    assert (network.stamp, network.created, network.built_in) == ("", None, True)


@pytest.mark.parametrize(
    ("name", "labels", "anonymous"),
    [
        ("f" * 64, {}, True),
        ("f" * 63, {}, False),
        ("g" * 64, {}, False),
        ("data", {"com.docker.volume.anonymous": ""}, True),
    ],
)
def test_anonymous_volumes_are_those_that_nobody_named(
    name: str, labels: dict[str, str], anonymous: bool
) -> None:
    (volume,) = views.volumes({"Volumes": [{"Name": name, "Labels": labels}]})
    assert volume.anonymous is anonymous


def test_a_docker_engine_is_named_by_the_network_that_it_makes_but_once() -> None:
    rows = [{"Id": "b1", "Name": "bridge"}, {"Id": "n1", "Name": "none"}]
    assert views.identity_in(views.networks(rows)) == "n1"
    assert views.identity_in(views.networks(rows[:1])) == ""


def test_podman_s_invented_id_is_not_used() -> None:
    first = {"ID": "random-1", "Name": "host", "DockerRootDir": "/var/lib/containers/storage"}
    again = {**first, "ID": "random-2"}
    assert views.identity_told(first) == views.identity_told(again)
    assert views.identity_told(first) != views.identity_told({**first, "DockerRootDir": "/other"})
    with pytest.raises(EngineError):
        views.identity_told({"ID": "random-1"})


@given(
    st.datetimes(min_value=dt.datetime(1970, 1, 2), max_value=dt.datetime(2399, 12, 31)),  # noqa: DTZ001
    st.integers(-14 * 60, 14 * 60),
)
def test_instants_agree_with_the_standard_library(moment: dt.datetime, minutes: int) -> None:
    aware = moment.replace(tzinfo=dt.timezone(dt.timedelta(minutes=minutes)))
    assert instant(aware.isoformat()) == pytest.approx(aware.timestamp(), abs=1e-5)


def test_instants_have_nanoseconds_and_z() -> None:
    assert instant("2026-11-30T22:50:44.169994331Z") == pytest.approx(1796079044.169994)
    assert instant("2026-11-30 22:50:44 +0000 UTC") == 1796079044.0


@pytest.mark.parametrize("text", ["", "now", "0001-01-01T00:00:00Z", "2026-13-01T00:00:00Z"])
def test_what_is_no_instant_is_not_known(text: str) -> None:
    assert instant(text) is None

from __future__ import annotations

import json

import pytest

from corral.decide.cluster_tools import (
    K3D,
    KIND,
    MINIKUBE,
    TOOLS,
    ClusterTool,
    Listed,
    claim_scope,
    complaint,
    is_name,
    without_secrets,
)
from corral.errors import InvalidValueError

TOKEN = "s3cr3t-t0k3n"


def k3d_listing(*names: str, running: int = 1) -> str:
    node = {"name": "n", "role": "server", "runtimeLabels": {"k3d.cluster.token": TOKEN}}
    return json.dumps([{"name": n, "nodes": [node], "serversRunning": running} for n in names])


def minikube_listing(valid: list[object], invalid: list[object] | None = None) -> str:
    return json.dumps({"valid": valid, "invalid": invalid or []})


def test_the_names_that_kind_prints_are_clusters() -> None:
    assert KIND.parse("one\ntwo.x-1\n\n") == (Listed("one"), Listed("two.x-1"))


@pytest.mark.parametrize("text", ["", "\n", "No kind clusters found.\n"])
def test_kind_without_clusters_has_none(text: str) -> None:
    assert KIND.parse(text) == ()


def test_k3d_lists_clusters_with_their_state() -> None:
    assert K3D.parse(k3d_listing("one", "two")) == (
        Listed("one", "running"),
        Listed("two", "running"),
    )
    assert K3D.parse(k3d_listing("one", running=0)) == (Listed("one", "stopped"),)
    assert K3D.parse("[]") == ()


def test_minikube_lists_valid_and_invalid_profiles() -> None:
    valid = {"Name": "one", "Status": "Running", "Config": {"Driver": "kvm2"}}
    torn = {"Name": "two", "Config": None}
    assert MINIKUBE.parse(minikube_listing([valid], [torn])) == (
        Listed("one", "running", "kvm2"),
        Listed("two", "invalid", ""),
    )
    assert MINIKUBE.parse(minikube_listing([])) == ()


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        (KIND, "NAME   AGE\n"),
        (KIND, '{"clusters": []}'),
        (KIND, "-rf\n"),
        (K3D, "NAME SERVERS\n"),
        (K3D, "null"),
        (K3D, '{"clusters": []}'),
        (K3D, f'[{{"token": "{TOKEN}"}}]'),
        (K3D, f'["{TOKEN}"]'),
        (K3D, f'[{{"name": "--all {TOKEN}"}}]'),
        (K3D, '[{"name": 7}]'),
        (MINIKUBE, ""),
        (MINIKUBE, "[]"),
        (MINIKUBE, '{"profiles": []}'),
        (MINIKUBE, '{"valid": {}, "invalid": []}'),
        (MINIKUBE, '{"valid": [{}], "invalid": []}'),
        (MINIKUBE, '{"error": {"Op": "open"}}'),
    ],
)
def test_output_of_another_form_is_not_understood_and_not_repeated(
    tool: ClusterTool, text: str
) -> None:
    with pytest.raises(InvalidValueError) as caught:
        tool.parse(text)
    assert TOKEN not in str(caught.value)


def test_each_tool_is_told_exactly_which_cluster_to_delete() -> None:
    assert KIND.delete_command("c", "/k") == (
        *("kind", "delete", "cluster", "--name", "c"),
        *("--kubeconfig", "/k"),
    )
    assert KIND.delete_command("c", "") == ("kind", "delete", "cluster", "--name", "c")
    assert K3D.delete_command("c", "/k") == ("k3d", "cluster", "delete", "c")
    assert MINIKUBE.delete_command("c", "/k") == ("minikube", "delete", "-p", "c")


def test_no_command_line_reaches_further_than_one_cluster() -> None:
    for tool in TOOLS.values():
        words = tool.delete_command("c", "/k")
        assert not {"--all", "--purge", "clusters", "-a"} & set(words)
        assert "clusters" in tool.list_command() or "list" in tool.list_command()


def test_names_are_claimed_for_each_tool_apart() -> None:
    assert len({claim_scope(tool) for tool in TOOLS}) == len(TOOLS)


@pytest.mark.parametrize(
    "text",
    [
        f"FATA[0000] token={TOKEN} is wrong",
        f'{{"k3d.cluster.token":"{TOKEN}"}}',
        f"--token {TOKEN}",
        f"Password: {TOKEN}",
        f"client-key-data: {TOKEN}",
    ],
)
def test_secrets_in_words_are_covered(text: str) -> None:
    assert TOKEN not in without_secrets(text)
    assert "***" in without_secrets(text)


def test_words_without_secrets_stay() -> None:
    assert without_secrets("ERROR: no such cluster: tokens") == "ERROR: no such cluster: tokens"


@pytest.mark.parametrize("text", ["", "-a", "--all", "a b", "a\nb", "..", "/x", "日本"])
def test_what_no_tool_takes_for_a_name_is_none(text: str) -> None:
    assert not is_name(text)


def test_a_complaint_is_the_last_line_that_says_something() -> None:
    assert complaint("ERROR: failed\nCommand Output: no daemon\n\n") == "Command Output: no daemon"
    assert complaint("") == ""
    assert complaint(f"FATA[0000] token={TOKEN}") == "FATA[0000] token=***"


def test_minikubes_box_is_not_its_complaint() -> None:
    words = "X Exiting due to GUEST_PROVISION: no space\n* \n╭────╮\n│ file an issue │\n╰────╯\n"
    assert complaint(words) == "X Exiting due to GUEST_PROVISION: no space"

from __future__ import annotations

import pytest

from corral.decide.cluster_calls import ClusterCall, read_cluster_call, with_cluster


def read(line: str) -> ClusterCall:
    call = read_cluster_call(line.split())
    assert call is not None
    return call


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("kind create cluster", ""),
        ("/go/bin/kind create cluster", ""),
        ("kind create cluster --name one", "one"),
        ("kind create cluster --name=one", "one"),
        ("kind create cluster -n one", "one"),
        ("kind create cluster -none", "one"),
        ("kind create cluster -n=one", "one"),
        ("kind -v 3 create cluster --config - --image i:1 --wait 1m --retain", ""),
        ("kind -q create --name one cluster", "one"),
        ("kind -v3 create cluster", ""),
        ("k3d cluster create", ""),
        ("k3d cluster create one", "one"),
        ("k3d cluster create -a 2 one --token x", "one"),
        ("k3d --verbose cluster create --agents=2 -p 80:80@loadbalancer one", "one"),
        ("k3d cluster create --wait=false -i rancher/k3s one", "one"),
        ("minikube start", ""),
        ("minikube start -p one", "one"),
        ("minikube start -pone", "one"),
        ("minikube start --driver docker --profile=one --cpus 2", "one"),
        ("minikube --profile one start --anything at all", "one"),
        ("minikube -p two start --profile one", "one"),
        ("minikube -v 5 --alsologtostderr start", ""),
        ("minikube start -p", ""),
    ],
)
def test_a_command_line_that_creates_a_cluster_is_read(line: str, name: str) -> None:
    call = read(line)
    assert (call.creates, call.name, call.unclear) == (True, name, "")


@pytest.mark.parametrize(
    "line",
    [
        "kind",
        "kind get clusters",
        "kind create",
        "kind create cluster --help",
        "kind delete cluster --name one",
        "kind load docker-image cluster create",
        "k3d cluster list",
        "k3d cluster delete one",
        "k3d cluster start one",
        "k3d node create cluster",
        "k3d cluster create -h",
        "k3d cluster -- create",
        "minikube",
        "minikube status",
        "minikube stop -p one",
        "minikube start --help",
        "minikube --help start",
    ],
)
def test_a_command_line_that_creates_nothing_is_left_alone(line: str) -> None:
    call = read(line)
    assert not call.creates
    assert not call.unclear


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("kind create cluster --nodes 3", "--nodes"),
        ("kind create cluster --nodes=3", "--nodes"),
        ("kind create cluster -qv3", "-qv3"),
        ("k3d cluster create --new-option x", "--new-option"),
        ("k3d -x cluster create", "-x"),
        ("minikube --new value start", "--new"),
    ],
)
def test_an_unknown_option_makes_the_call_unclear(line: str, option: str) -> None:
    call = read(line)
    assert (call.creates, call.unclear) == (False, option)


@pytest.mark.parametrize("argv", [[], ["make", "kind"], ["kubectl", "create", "cluster"]])
def test_other_programs_are_not_read(argv: list[str]) -> None:
    assert read_cluster_call(argv) is None


def test_the_kubeconfig_that_a_command_line_names_is_read() -> None:
    assert read("kind create cluster --kubeconfig k").kubeconfig == "k"
    assert read("kind create cluster --kubeconfig=k").kubeconfig == "k"


def extended(line: str) -> str:
    return " ".join(with_cluster(line.split(), read(line), "own", {"corral.owner": "o"}))


def test_k3d_is_told_the_name_and_the_labels_right_behind_the_subcommand() -> None:
    added = "own --runtime-label corral.owner=o@all"
    assert extended("k3d cluster create -a 1") == f"k3d cluster create {added} -a 1"


def test_a_name_that_the_user_gave_stays() -> None:
    label = "--runtime-label corral.owner=o@all"
    assert extended("k3d --trace cluster create one") == f"k3d --trace cluster create {label} one"


@pytest.mark.parametrize("line", ["kind create cluster", "minikube start --cpus 2"])
def test_tools_that_read_variables_get_no_more_words(line: str) -> None:
    assert extended(line) == line

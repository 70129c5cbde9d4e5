from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.decide.engine_calls import EngineCall, label_arguments, read_engine_call
from corral.decide.localstack import is_localstack

LABELS = {"corral.owner": "o1", "corral.env": "e1"}
ADDED = "--label corral.owner=o1 --label corral.env=e1"


def labelled(line: str) -> str:
    return " ".join(label_arguments(line.split(), LABELS))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("docker run", "box sleep 1"),
        ("docker create", "--name x box"),
        ("docker container run", "-d box"),
        ("docker container create", "box"),
        ("docker network create", "net"),
        ("docker volume create", "vol"),
        ("/usr/bin/docker run", "box"),
        ("podman run", "box"),
        ("podman --root /r --runroot=/rr --runtime runc run", "box"),
        ("podman --remote --url unix:///p run", "box"),
        ("podman -r -c far network create", "net"),
        ("nerdctl --namespace k8s.io run", "box"),
        ("container run", "-d box"),
        ("container --debug network create", "net"),
        ("nerdctl -n x -a /s container create", "box"),
        ("docker --context far run", "box"),
        ("docker --context=far run", "box"),
        ("docker -c far run", "box"),
        ("docker -cfar run", "box"),
        ("docker -c=far run", "box"),
        ("docker -H tcp://h:1 --tls --tlscacert ca run", "box"),
        ("docker -D -l debug --config /c run", "box"),
        ("docker -DH unix:///s run", "box"),
        ("docker --host unix:///s volume create", ""),
    ],
)
def test_labels_go_right_behind_the_subcommand(before: str, after: str) -> None:
    assert labelled(f"{before} {after}") == f"{before} {ADDED} {after}".strip()


@pytest.mark.parametrize(
    "line",
    [
        "",
        "make run",
        "docker",
        "docker ps run",
        "docker exec web run",
        "docker start web",
        "docker network ls",
        "docker network connect create web",
        "docker container",
        "docker image build .",
        "docker service create x",
        "docker compose up -d",
        "docker-compose run web",
        "docker -",
        "docker --help",
        "docker --new-option x run box",
        "docker -z run box",
        "docker -D=1x run box",
        "sudo docker run box",
        "mydocker run box",
        "docker --context",
    ],
)
def test_every_other_command_line_is_left_alone(line: str) -> None:
    assert labelled(line) == line


def test_what_the_user_says_comes_later() -> None:
    line = labelled("docker run --label corral.owner=other box")
    assert line == f"docker run {ADDED} --label corral.owner=other box"


def test_values_are_one_word_each() -> None:
    words = label_arguments(["docker", "run", "box"], {"corral.session": "a b;$(c)"})
    assert words == ("docker", "run", "--label", "corral.session=a b;$(c)", "box")


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("docker -H tcp://h run x", EngineCall("docker", "container", 4, host="tcp://h")),
        ("docker -Htcp://h run x", EngineCall("docker", "container", 3, host="tcp://h")),
        ("docker --host=a --host b run x", EngineCall("docker", "container", 5, host="b")),
        ("docker --context far create x", EngineCall("docker", "container", 4, context="far")),
        ("podman --url u --connection c ps", EngineCall("podman", host="u", context="c")),
        ("docker ps", EngineCall("docker")),
        ("docker --odd run", EngineCall("docker", unclear="--odd")),
        ("docker -Dx run", EngineCall("docker", unclear="-Dx")),
        ("docker --context", EngineCall("docker")),
        ("docker -H", EngineCall("docker")),
        ("docker compose up -d", EngineCall("docker", "compose", 3)),
        ("docker -c far compose -p x up", EngineCall("docker", "compose", 7, "", "far", "x")),
        ("docker compose -f a.yaml --profile p run w", EngineCall("docker", "compose", 7)),
        ("docker compose --project-name=y start", EngineCall("docker", "compose", 4, project="y")),
        ("docker compose --verbose ps", EngineCall("docker")),
        ("docker compose -p x down", EngineCall("docker", project="x")),
        ("docker compose", EngineCall("docker")),
        ("docker compose --odd up", EngineCall("docker", unclear="--odd")),
        ("docker-compose -px up", EngineCall("docker", "compose", 3, project="x")),
        ("podman-compose up", EngineCall("podman", "compose", 2)),
        ("nerdctl compose up", EngineCall("nerdctl", "compose", 3)),
        ("nerdctl -Hx run b", EngineCall("nerdctl", "container", 3)),
    ],
)
def test_a_call_is_understood(line: str, call: EngineCall) -> None:
    found = read_engine_call(line.split())
    assert found is not None
    assert found._replace(options=()) == call


def test_the_tool_s_own_options_are_kept_as_they_stand() -> None:
    call = read_engine_call(["podman", "--root", "/r", "--log-level=debug", "run", "--rm", "box"])
    assert call is not None
    assert call.options == ("--root", "/r", "--log-level=debug")


def test_other_programs_are_no_calls() -> None:
    assert read_engine_call([]) is None
    assert read_engine_call(["npm", "run", "dev"]) is None


def test_localstack_is_told_to_label_what_it_starts() -> None:
    flags = "LAMBDA_DOCKER_FLAGS=-l corral.owner=o1 -l corral.env=e1"
    assert label_arguments(["docker", "run", "-d", "localstack/localstack:3"], LABELS) == (
        "docker", "run", *ADDED.split(), "--env", flags, "-d", "localstack/localstack:3",
    )  # fmt: skip
    told = "docker run -e LAMBDA_DOCKER_FLAGS localstack/localstack"
    assert labelled(told) == f"docker run {ADDED} -e LAMBDA_DOCKER_FLAGS localstack/localstack"
    assert labelled("docker volume create localstack") == f"docker volume create {ADDED} localstack"


@pytest.mark.parametrize(
    ("name", "true"),
    [
        ("localstack/localstack", True),
        ("r.io:5000/x/localstack-pro:1@sha256:ab", True),
        ("localstack", True),
        ("localstack-main", False),
        ("localstack/other", False),
    ],
)
def test_localstack_is_known_by_its_image(name: str, true: bool) -> None:
    assert is_localstack(name) is true


WORD = st.sampled_from(
    ["run", "create", "container", "network", "compose", "-H", "-D", "--context", "x", "-", "--x"]
)


@given(st.lists(WORD, max_size=7))
def test_nothing_of_the_command_line_is_ever_lost(words: list[str]) -> None:
    argv = ["docker", *words]
    said = list(label_arguments(argv, {"k": "v"}))
    if said != argv:
        at = said.index("--label")
        assert said[at + 1] == "k=v"
        assert said[:at] + said[at + 2 :] == argv

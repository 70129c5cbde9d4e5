"""The files that agents read, against the formats that the agents document."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from corral import __version__
from corral.cli.dispatch import parser_for
from corral.cli.hook import AGENTS
from corral.cli.main import COMMANDS
from corral.decide.agent_settings import EVENTS, Form, entry

_ROOT = Path(__file__).parents[2]
_SHIPPED = _ROOT / "src/corral/integrations"
_KEBAB = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_FORMS = {"claude": Form("claude", in_words=True), "codex": Form("codex", in_words=False)}
_SH = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)

_agents = pytest.mark.parametrize("agent", AGENTS)


def _json(agent: str, name: str) -> Any:
    return json.loads((_SHIPPED / agent / name).read_text(encoding="utf-8"))


def _skill(agent: str) -> tuple[dict[str, Any], str]:
    text = (_SHIPPED / agent / "skills/corral/SKILL.md").read_text(encoding="utf-8")
    _, head, body = text.split("---\n", 2)
    return YAML(typ="safe").load(head), body


@_agents
def test_the_plugin_says_what_it_is(agent: str) -> None:
    plugin = _json(agent, f".{agent}-plugin/plugin.json")
    assert set(plugin) <= {
        "name", "version", "description", "author", "homepage", "repository", "license", "keywords",
    }  # fmt: skip
    assert plugin["name"] == "corral"
    assert _KEBAB.fullmatch(plugin["name"])
    assert plugin["version"] == __version__
    assert set(plugin["author"]) == {"name"}
    assert plugin["license"] == "Apache-2.0"
    assert all(isinstance(word, str) for word in plugin["keywords"])


def test_the_marketplace_names_a_plugin_that_is_there() -> None:
    market = _json("claude", ".claude-plugin/marketplace.json")
    assert set(market) == {"name", "owner", "plugins"}
    assert _KEBAB.fullmatch(market["name"])
    assert set(market["owner"]) == {"name"}
    for plugin in market["plugins"]:
        assert set(plugin) == {"name", "source"}
        assert plugin["source"].startswith("./")
        there = _SHIPPED / "claude" / plugin["source"] / ".claude-plugin/plugin.json"
        assert json.loads(there.read_text())["name"] == plugin["name"]


@_agents
def test_the_plugins_hooks_are_what_install_writes_without_a_matcher(agent: str) -> None:
    document = _json(agent, "hooks/hooks.json")
    assert set(document) == {"description", "hooks"}
    assert document["hooks"] == {
        event: [{"hooks": [entry(_FORMS[agent], "corral-hook", seconds)]}]
        for event, seconds in EVENTS.items()
    }


@_agents
def test_the_skill_has_portable_front_matter(agent: str) -> None:
    head, _ = _skill(agent)
    assert set(head) <= {
        "name", "description", "license", "compatibility", "metadata", "allowed-tools",
    }  # fmt: skip
    assert head["name"] == "corral"
    assert 50 < len(head["description"]) <= 1024
    assert len(head["compatibility"]) <= 500


@_agents
def test_the_skill_gives_the_whole_directive(agent: str) -> None:
    _, body = _skill(agent)
    plain = " ".join(body.replace("*", "").split())
    for word in (
        "Look before you start", "is yours", "takes down", "shared runtime", "Leave nothing behind",
        "tunnels", "VPN", "corral status", "corral reap", "teardown", "corral cleanup", "SIGKILL",
        "LocalStack", "kind create cluster", "k3d", "minikube", "microVM", "docker compose",
        "corral.session", "docker system prune", "By hand", "What happens by itself", "Never do",
    ):  # fmt: skip
        assert word in plain, word


@_agents
def test_every_command_of_the_skill_is_one_that_corral_understands(agent: str) -> None:
    _, body = _skill(agent)
    lines = [line for block in _SH.findall(body) for line in block.splitlines()]
    assert lines
    for line in lines:
        corral, command, *words = line.split()
        assert corral == "corral"
        own = words[: words.index("--")] if "--" in words else words
        parser_for(command, *COMMANDS[command]).parse_args(own)


@_agents
def test_the_repository_shows_the_one_copy_that_is_shipped(agent: str) -> None:
    shown = _ROOT / "integrations" / agent
    assert os.path.samefile(shown, _SHIPPED / agent)


def test_both_agents_have_the_same_skill() -> None:
    one, other = (_SHIPPED / agent / "skills/corral/SKILL.md" for agent in AGENTS)
    assert os.path.samefile(one, other)

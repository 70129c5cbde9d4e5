"""A stand-in for kind, k3d and minikube: the same words, output and exit codes as theirs.

Called as `python -m support.standins.cluster_tool TOOL STATE-DIRECTORY ARGUMENTS...`. Nodes are
containers of the stand-in engine, or of a real one where the state names its host.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

from support.standins.state import State, new_id

LABELS = {
    "kind": "io.x-k8s.kind.cluster",
    "k3d": "k3d.cluster",
    "minikube": "name.minikube.sigs.k8s.io",
}
TOKEN = "SUPER-SECRET-TOKEN"
FOREVER = 600.0


class Tool:
    def __init__(self, name: str, state: State) -> None:
        self.name = name
        self.state = state
        self.label = LABELS[name]

    def run(self, words: list[str]) -> int:
        self.state.note_call([self.name, *words])
        options = _options(words)
        line = " ".join(w for w in words if not w.startswith("-"))
        if self.name == "kind" and line.startswith("get clusters"):
            return self._list()
        if self.name == "k3d" and line.startswith("cluster list"):
            return self._list()
        if self.name == "minikube" and line.startswith("profile list"):
            return self._list()
        if "create" in words or (self.name == "minikube" and "start" in words):
            return self._create(self._name(words, options), options)
        if "delete" in words:
            return self._delete(self._name(words, options), options)
        print(f"ERROR: unknown command {line!r}", file=sys.stderr)
        return 1

    def _name(self, words: list[str], options: dict[str, str]) -> str:
        if self.name == "kind":
            return options.get("--name") or os.environ.get("KIND_CLUSTER_NAME") or "kind"
        if self.name == "minikube":
            return options.get("-p") or os.environ.get("MINIKUBE_PROFILE") or "minikube"
        others = _others(words)
        return others[2] if len(others) > 2 else "k3s-default"

    def _list(self) -> int:
        fault = self.state.fault(f"{self.name} list")
        if fault == "hang":
            time.sleep(FOREVER)
        if fault == "fail":
            return self._refuse("Cannot connect to the Docker daemon; token=" + TOKEN)
        if fault == "garble":
            print('{"version": "next", "token": "' + TOKEN + '"} ; a new form')
            return 0
        clusters = self.state.read()["clusters"].get(self.name, {})
        names = sorted(clusters) if fault != "empty" else []
        getattr(self, f"_print_{self.name}")(names, clusters)
        return 0

    def _print_kind(self, names: list[str], clusters: dict[str, Any]) -> None:
        del clusters
        if not names:
            print("No kind clusters found.", file=sys.stderr)
        for name in names:
            print(name)

    def _print_k3d(self, names: list[str], clusters: dict[str, Any]) -> None:
        del clusters
        network = {"id": new_id(), "isExternal": False}
        node = {"role": "server", "runtimeLabels": {"k3d.cluster.token": TOKEN}}
        listing = [
            {
                "name": name,
                "network": {"name": f"k3d-{name}", **network},
                "nodes": [
                    {
                        **node,
                        "name": f"k3d-{name}-server-0",
                        "State": {"Running": True, "Status": "running"},
                    }
                ],
                "serversRunning": 1,
                "serversCount": 1,
                "agentsRunning": 0,
                "agentsCount": 0,
            }
            for name in names
        ]
        print(json.dumps(listing))

    def _print_minikube(self, names: list[str], clusters: dict[str, Any]) -> None:
        valid = [
            {
                "Name": name,
                "Status": "OK",
                "Config": {"Name": name, "Driver": clusters[name]["driver"]},
                "Active": False,
                "ActiveKubeContext": False,
            }
            for name in names
        ]
        print(json.dumps({"invalid": [], "valid": valid}))

    def _refuse(self, words: str) -> int:
        if self.name == "minikube":
            print(json.dumps({"error": {"Op": "open", "Path": "/x"}}))
            print(f"X Exiting due to GUEST_ERROR: {words}", file=sys.stderr)
            return 80
        begin = "FATA[0000]" if self.name == "k3d" else "ERROR:"
        print(f"{begin} {words}", file=sys.stderr)
        return 1

    def _create(self, name: str, options: dict[str, str]) -> int:
        fault = self.state.fault(f"{self.name} create")
        if name in self.state.read()["clusters"].get(self.name, {}):
            return 0 if self.name == "minikube" else self._refuse(f"{name} exists already")
        if fault == "fail":
            return self._refuse("failed to create cluster")
        kubeconfig = options.get("--kubeconfig") or os.environ.get("KUBECONFIG", "")
        driver = options.get("--driver", "docker")
        if driver == "docker":
            self._start_nodes(name, options)
        with self.state.edit() as content:
            of_tool = content["clusters"].setdefault(self.name, {})
            of_tool[name] = {"kubeconfig": kubeconfig, "driver": driver}
        if kubeconfig:
            with open(kubeconfig, "a", encoding="utf-8") as file:
                file.write(f"context {self.name}-{name}\n")
        if fault == "hang":
            time.sleep(FOREVER)
        return 0

    def _start_nodes(self, name: str, options: dict[str, str]) -> None:
        labels = {self.label: name}
        for text in filter(None, options.get("--runtime-label", "").split("\n")):
            key, _, value = text.partition("=")
            labels[key] = value.removesuffix("@all")
        if self.name == "k3d":
            labels["k3d.cluster.token"] = TOKEN
        host = self.state.read().get("host", "")
        for number in range(1 if host else 2):
            node = f"{name}-{self.name}-node-{number}"
            if host:
                _docker(
                    host, "run", "-d", "--name", node, *_labelled(labels), "box", "sleep", "600"
                )
                continue
            with self.state.edit() as content:
                content["containers"][new_id()] = {
                    "name": node,
                    "labels": labels,
                    "state": "running",
                    "created": time.time(),
                    "image": "sha256:node",
                }

    def _delete(self, name: str, options: dict[str, str]) -> int:
        fault = self.state.fault(f"{self.name} delete")
        if fault == "hang":
            time.sleep(FOREVER)
        if fault == "slow":
            time.sleep(1.5)
        if fault == "fail":
            return self._refuse(f"failed to delete {name}: permission denied, token: {TOKEN}")
        if fault == "lie":
            return 0
        if fault != "profile only":
            self._remove_nodes(name)
        if fault != "nodes only":
            kubeconfig = options.get("--kubeconfig") or os.environ.get("KUBECONFIG", "")
            with self.state.edit() as content:
                if content["clusters"].get(self.name, {}).pop(name, None) is None:
                    return 0
                content.setdefault("kubeconfigs", []).append(kubeconfig)
        return 0

    def _remove_nodes(self, name: str) -> None:
        host = self.state.read().get("host", "")
        if host:
            wanted = _docker(host, "ps", "-aq", "--filter", f"label={self.label}={name}").split()
            if wanted:
                _docker(host, "rm", "-f", "-v", *wanted)
            return
        with self.state.edit() as content:
            for identifier, container in list(content["containers"].items()):
                if container["labels"].get(self.label) == name:
                    del content["containers"][identifier]


def _options(words: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for place, word in enumerate(words):
        if not word.startswith("-"):
            continue
        name, equals, value = word.partition("=")
        if not equals:
            value = words[place + 1] if place + 1 < len(words) else ""
        found[name] = f"{found[name]}\n{value}" if name in found else value
    return found


def _others(words: list[str]) -> list[str]:
    """The words that are neither options nor their values."""
    found, skip = [], False
    for word in words:
        if not skip and not word.startswith("-"):
            found.append(word)
        skip = word.startswith("-") and "=" not in word
    return found


def _labelled(labels: dict[str, str]) -> list[str]:
    return [word for k, v in labels.items() for word in ("--label", f"{k}={v}")]


def _docker(host: str, *words: str) -> str:
    done = subprocess.run(
        ["docker", "--host", host, *words], capture_output=True, text=True, check=True
    )
    return done.stdout


if __name__ == "__main__":
    sys.exit(Tool(sys.argv[1], State(sys.argv[2])).run(sys.argv[3:]))

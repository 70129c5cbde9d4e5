"""A stand-in for Apple's `container`: its commands, both of its JSON forms, and its faults.

Faults: "container list" fail, down, hang, garble, empty; "container delete" fail, lie, slow, hang;
"container stop" lie. The form is the state's `form`: "old" (up to 0.12) or "new" (from 1.0).
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from support.standins.state import State

FOREVER = 600.0


def run(state: State, words: list[str]) -> int:
    state.note_call(["container", *words])
    if words[:2] == ["system", "status"]:
        return _status(state)
    if words[:2] == ["network", "list"]:
        return _list(state, "networks")
    if words[:2] == ["network", "delete"]:
        return _delete(state, "networks", words[-1])
    if words[0] == "list":
        return _list(state, "containers")
    if words[0] == "delete":
        return _delete(state, "containers", words[-1])
    if words[0] == "stop":
        return _stop(state, words[-1])
    print(f"Error: unknown command {words}", file=sys.stderr)
    return 64


def _status(state: State) -> int:
    if state.fault("container list") != "down":
        print("FIELD VALUE\nstatus running")
        return 0
    print("apiserver is not running and not registered with launchd")
    return 1


def _list(state: State, what: str) -> int:
    fault = state.fault("container list")
    if fault == "hang":
        time.sleep(FOREVER)
    if fault in {"fail", "down"}:
        print("Error: interrupted: XPC connection error: Connection invalid", file=sys.stderr)
        return 1
    content = state.read()
    if fault == "garble":
        print('{"items": {}, "kind": "List"}')
        return 0
    old = content.get("form", "new") == "old"
    named = {} if fault == "empty" else content[what]
    make = _old if old else _new
    print(json.dumps([make(what, i, thing) for i, thing in named.items()]))
    return 0


def _old(what: str, identifier: str, thing: dict[str, Any]) -> dict[str, Any]:
    configuration = {"id": identifier, "labels": thing["labels"], "mounts": thing.get("mounts", [])}
    if what == "networks":
        return {"id": identifier, "state": "running", "config": configuration}
    return {"status": thing["state"], "configuration": configuration, "networks": []}


def _new(what: str, identifier: str, thing: dict[str, Any]) -> dict[str, Any]:
    configuration = {
        "labels": thing["labels"],
        "creationDate": thing["date"],
        "mounts": thing.get("mounts", []),
    }
    if what == "networks":
        configuration["name"] = identifier
        return {"id": identifier, "configuration": configuration, "status": {"ipv4Gateway": "x"}}
    configuration["id"] = identifier
    status = {"state": thing["state"], "networks": [], "startedDate": thing["date"]}
    return {"id": identifier, "configuration": configuration, "status": status}


def _delete(state: State, what: str, identifier: str) -> int:
    fault = state.fault("container delete")
    if fault == "hang":
        time.sleep(FOREVER)
    if fault == "slow":
        time.sleep(1.0)
    if fault == "fail":
        print(f"Error: failed to delete {identifier}: busy", file=sys.stderr)
        return 1
    with state.edit() as content:
        if identifier not in content[what]:
            print(f"Error: notFound: {identifier}", file=sys.stderr)
            return 1
        if fault != "lie":
            del content[what][identifier]
    print(identifier)
    return 0


def _stop(state: State, identifier: str) -> int:
    with state.edit() as content:
        if state.fault("container stop") != "lie" and identifier in content["containers"]:
            content["containers"][identifier]["state"] = "stopped"
    print(identifier)
    return 0


if __name__ == "__main__":
    sys.exit(run(State(sys.argv[1]), sys.argv[2:]))

"""Guessing a project's ports from the files that it has."""

from __future__ import annotations

import json

import pytest

from corral.decide.inferring import (
    Guess,
    from_env_example,
    from_package_json,
    from_procfile,
    merged,
)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("web: gunicorn app:app", ("web", None)),
        ("web: gunicorn -b 0.0.0.0:8000 app:app", ("web", 8000)),
        ("web: gunicorn --bind=:8001 app:app", ("web", 8001)),
        ("api: uvicorn main:app --port 8002", ("api", 8002)),
        ("api: rails server -p ${PORT:-3000}", ("api", 3000)),
        ("api: node server.js $PORT", ("api", None)),
        ("admin: PORT=4000 node admin.js", ("admin", 4000)),
        ("web: python manage.py runserver 8003", ("web", 8003)),
        ("web: python manage.py runserver 0.0.0.0:8004", ("web", 8004)),
        ("web: serve --port 99999", ("web", None)),
    ],
)
def test_a_process_that_takes_a_port_is_found(line: str, expected: tuple[str, int | None]) -> None:
    assert [g[:2] for g in from_procfile(line)] == [expected]


@pytest.mark.parametrize(
    "line", ["worker: celery -A app", "# web: x", "", "release: ./migrate", "web:", "mkdir -p 3000"]
)
def test_a_process_without_a_port_is_not_guessed(line: str) -> None:
    assert from_procfile(line) == ()


@pytest.mark.parametrize(
    ("scripts", "expected"),
    [
        ({"dev": "vite"}, [("web", 5173)]),
        ({"dev": "next dev -p 4000"}, [("web", 4000)]),
        ({"start": "react-scripts start", "test": "react-scripts test"}, [("web", 3000)]),
        ({"build": "next build", "start": "node server.js"}, []),
        ({"dev": "vite build --watch"}, []),
        ({"dev": "vite", "dev:api": "node api.js --port 8000"}, [("web", 5173), ("api", 8000)]),
        ({"dev:worker": "node worker.js"}, []),
        ({"start": "PORT=3100 node server.js"}, [("web", 3100)]),
        ({"serve": "http-server -p $PORT"}, [("web", None)]),
        ({"dev": 3}, []),
        ([], []),
    ],
)
def test_the_script_that_serves_is_found(
    scripts: object, expected: list[tuple[str, int | None]]
) -> None:
    guesses = from_package_json(json.dumps({"scripts": scripts}))
    assert [g[:2] for g in guesses] == expected


@pytest.mark.parametrize("text", ["", "[]", "{", "3"])
def test_a_broken_package_json_is_an_error_for_the_caller_to_tell(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        from_package_json(text)


def test_a_package_json_without_scripts_says_nothing() -> None:
    assert from_package_json("{}") == ()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("PORT=3000", [("web", 3000)]),
        ("export API_PORT='8000'", [("api", 8000)]),
        ('ADMIN_UI_PORT="8100" # admin', [("admin_ui", 8100)]),
        ("API_PORT=", [("api", None)]),
        ("#API_PORT=8000", []),
        ("DB_PORT=5432", []),
        ("MY_REDIS_PORT=16379", []),
        ("STORE_PORT=5432", []),
        ("REPORT=1", []),
        ("API_PORT=70000", [("api", None)]),
        ("PORT_API=1", []),
    ],
)
def test_a_port_of_the_projects_own_is_found(
    line: str, expected: list[tuple[str, int | None]]
) -> None:
    assert [g[:2] for g in from_env_example(line)] == expected


def test_what_was_said_first_stays_and_later_files_only_add() -> None:
    first = Guess("web", None, "Procfile")
    assert merged(
        [
            first,
            Guess("api", 8000, "Procfile"),
            Guess("web", 3000, "package.json"),
            Guess("other", 8000, ".env.example"),
            Guess("API", 9000, ".env.example"),
        ]
    ) == (Guess("web", 3000, "Procfile"), Guess("api", 8000, "Procfile"))

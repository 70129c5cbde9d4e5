"""The pages hold together: generated ones match the source, and every link leads somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PAGES = sorted([*_ROOT.glob("*.md"), *(_ROOT / "docs").rglob("*.md")])
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#([^)\s]+))?\)")


def test_generated_pages_match_the_source() -> None:
    done = subprocess.run(
        [sys.executable, _ROOT / "docs" / "generate.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", _PAGES, ids=lambda p: str(p.relative_to(_ROOT)))
def test_every_link_between_pages_leads_somewhere(page: Path) -> None:
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    targets = [target for target, _ in _LINK.findall(text) if "://" not in target]
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


def test_the_readme_leads_to_every_guide_and_explanation_itself() -> None:
    linked = {target for target, _ in _LINK.findall((_ROOT / "README.md").read_text("utf-8"))}
    pages = [*_ROOT.glob("docs/how-to/*.md"), *_ROOT.glob("docs/explanation/*.md")]
    pages += [*_ROOT.glob("docs/reference/*.md"), _ROOT / "docs" / "tutorial" / "index.md"]
    assert {str(page.relative_to(_ROOT)) for page in pages} <= linked


def test_every_page_of_the_documentation_is_reachable() -> None:
    seen: set[Path] = set()
    waiting = [_ROOT / "docs" / "index.md"]
    while waiting:
        page = waiting.pop()
        if page in seen:
            continue
        seen.add(page)
        for target, _ in _LINK.findall(page.read_text(encoding="utf-8")):
            linked = (page.parent / target).resolve()
            if linked.suffix == ".md" and linked.exists():
                waiting.append(linked)
    assert set((_ROOT / "docs").rglob("*.md")) <= seen

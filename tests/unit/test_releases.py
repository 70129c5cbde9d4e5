"""Which spellings of a release contend for the same lock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.decide.releases import canonicalize_release_id
from corral.errors import CorralError, InvalidValueError

_SPACE = st.text(" \t\n\r\x0b\x0c\u00a0\u2003\u3000", max_size=3)
_PLAIN = st.from_regex(r"[0-9a-u][0-9a-z._+-]{0,12}", fullmatch=True)


@pytest.mark.parametrize(
    "spelling",
    [
        "0.19.0",
        "v0.19.0",
        "V0.19.0",
        " V0.19.0 ",
        "v 0.19.0",
        "\tv\u00a00.19.0\n",
        "ｖ０．１９．０",  # noqa: RUF001 - full-width on purpose
        "v\u200b0.19.0",
        "\ufeffv0.19.0",
    ],
)
def test_spellings_of_one_release_are_one(spelling: str) -> None:
    assert canonicalize_release_id(spelling) == "0.19.0"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("v10", "v1.0"),
        ("v1.0", "v1.0.0"),
        ("v1 0", "v10"),
        ("v1.0", "v1.0-rc1"),
        ("v1.0", "w1.0"),
        ("vv1", "v1"),
        ("release-1", "release 1"),
        ("v", "1"),
    ],
)
def test_different_releases_stay_apart(one: str, other: str) -> None:
    assert canonicalize_release_id(one) != canonicalize_release_id(other)


@pytest.mark.parametrize(
    ("spelling", "canonical"),
    [
        ("Vista", "vista"),
        ("v", "v"),
        ("v v1", "v v1"),
        ("vv1", "vv1"),
        ("My   Release\n2", "my release 2"),
        ("Straße", "strasse"),
        ("v٣", "٣"),
        ("../../etc/passwd", "../../etc/passwd"),
    ],
)
def test_the_v_goes_only_where_a_digit_follows(spelling: str, canonical: str) -> None:
    assert canonicalize_release_id(spelling) == canonical


@pytest.mark.parametrize("empty", ["", " ", "\n\t", "\u3000", "\u200b", "\ufeff \u00ad"])
def test_an_empty_release_id_is_refused(empty: str) -> None:
    with pytest.raises(InvalidValueError, match="empty"):
        canonicalize_release_id(empty)


@pytest.mark.parametrize("value", [None, 1.0, b"v1", ["v1"]])
def test_what_is_no_text_is_refused(value: object) -> None:
    with pytest.raises(CorralError, match="is text"):
        canonicalize_release_id(value)  # type: ignore[arg-type]


@given(_PLAIN, _SPACE, _SPACE, _SPACE, st.sampled_from(["", "v", "V", "ｖ"]))  # noqa: RUF001
def test_case_white_space_and_a_v_never_count(
    plain: str, before: str, between: str, after: str, letter: str
) -> None:
    if not plain[0].isdigit():
        letter, between = "", ""
    spelling = f"{before}{letter}{between}{plain.upper()}{after}"
    assert canonicalize_release_id(spelling) == plain


@given(_PLAIN, _PLAIN)
def test_plain_ids_are_never_taken_for_each_other(one: str, other: str) -> None:
    same = canonicalize_release_id(one) == canonicalize_release_id(other)
    assert same == (one == other)


@given(st.text(st.characters()))
def test_a_canonical_form_is_its_own(text: str) -> None:
    try:
        once = canonicalize_release_id(text)
    except InvalidValueError:
        return
    assert canonicalize_release_id(once) == once
    assert once == once.strip()
    assert once

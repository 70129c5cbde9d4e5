"""Settings from `CORRAL_*` variables: `CORRAL_<SECTION>_<KEY>`, such as CORRAL_KEEPER_GRACE."""

from __future__ import annotations

from corral.config.files import check_name, check_variable, checked
from corral.config.schema import RULES, SECTIONS, Rule, keys_below
from corral.decide.spelling import did_you_mean
from corral.errors import ConfigurationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

PREFIX = "CORRAL_"


def variable_of(key: str) -> str:
    """The variable of a key: `keeper.grace` is CORRAL_KEEPER_GRACE."""
    return PREFIX + key.upper().replace(".", "_").replace("-", "_")


_FIXED: dict[str, Rule] = {variable_of(rule.key): rule for rule in RULES if "*" not in rule.key}
_DIGITS = 9  # more are no port, and int() is slow on very many
_PORT, _VAR = f"{PREFIX}PORTS_", f"{PREFIX}VARS_"


def read(environ: Mapping[str, str], ports: Iterable[str]) -> Iterator[tuple[str, str, Any]]:
    """Every (variable, key, checked value) that the environment sets.

    `ports`: the names that files give to ports; a variable for another name makes a new port.
    Raises ConfigurationError for a variable in a known section whose key is unknown.
    """
    named = {variable_of(f"ports.{name}"): name for name in ports}
    for variable in sorted(environ):
        if not variable.startswith(PREFIX):
            continue
        written = environ[variable]
        if variable in _FIXED:
            rule = _FIXED[variable]
            value = _parse(rule, written, variable)
            yield variable, rule.key, checked(rule.key, value, variable)
        elif variable.startswith(_PORT):
            name = named.get(variable) or variable.removeprefix(_PORT).lower()
            check_name(name, variable)
            key = f"ports.{name}.preferred"
            yield variable, key, checked(key, _number(written), variable)
        elif variable.startswith(_VAR):
            name = variable.removeprefix(_VAR)
            check_variable(name, variable)
            yield variable, f"vars.{name}", checked(f"vars.{name}", written, variable)
        else:
            _refuse_unknown(variable)


def _refuse_unknown(variable: str) -> None:
    """A misspelt setting must not be ignored; a variable of no section is somebody else's."""
    for section in SECTIONS:
        if variable.startswith(f"{variable_of(section)}_"):
            words = [v for v in _FIXED if v.startswith(f"{variable_of(section)}_")]
            known = f"{', '.join(words)}{did_you_mean(variable, words)}"
            raise ConfigurationError(
                f"{variable}: unknown key in [{section}]: expected one of {known}",
                resource=variable,
                remedy=f"unset it; [{section}] has {', '.join(keys_below(section))}",
            )


def _parse(rule: Rule, written: str, variable: str) -> Any:
    if rule.form == "integer":
        return _number(written)
    if rule.form == "list":
        return _list(written, variable)
    return written


def _number(written: str) -> int | str:
    """The integer if it is one, else the text, which the key's check refuses."""
    short = written.isascii() and written.isdigit() and len(written) <= _DIGITS
    return int(written) if short else written


def _list(written: str, variable: str) -> Any:
    """A list is written as a TOML array; anything else is one item."""
    if not written.lstrip().startswith("["):
        return [written]
    import tomllib

    try:
        return tomllib.loads(f"list = {written}")["list"]
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigurationError(
            f"{variable} is no TOML array: {error}",
            resource=variable,
            remedy='write it like ["one", "two"]',
        ) from error

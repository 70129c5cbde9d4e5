r"""Shell exports: `export NAME='value'` lines for `source` in any POSIX shell.

Read back the same by sh, dash, bash and zsh: within single quotes a shell gives no character a
meaning, so every value survives, line breaks and carriage returns included; a single quote is
written as `'\''`. Names that one of these shells fills or reads itself cannot be carried.
"""

from __future__ import annotations

from corral.render.variables import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from corral.render.variables import Variables

PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:@%+,-")

# What bash 5 or zsh 5 refuse to set, set to something else, or do not hand on when a sourced file
# assigns it; found by trying every variable that either shell knows.
_BASH = """
BASHOPTS BASHPID BASH_ALIASES BASH_ARGC BASH_ARGV BASH_ARGV0 BASH_CMDS BASH_COMMAND BASH_LINENO
BASH_SOURCE BASH_SUBSHELL BASH_VERSINFO COMP_WORDBREAKS DIRSTACK EPOCHREALTIME EPOCHSECONDS EUID
FUNCNAME GROUPS HISTCMD LINENO OPTIND PIPESTATUS PPID RANDOM SECONDS SHELLOPTS SHLVL SRANDOM UID _
"""
_ZSH = """
ARGC COLUMNS EGID ERRNO FUNCNEST GID HISTSIZE KEYTIMEOUT LINES LISTMAX MAILCHECK SAVEHIST
TRY_BLOCK_ERROR TRY_BLOCK_INTERRUPT TTYIDLE USERNAME ZSH_EVAL_CONTEXT ZSH_SUBSHELL
aliases argv builtins cdpath commands dirstack dis_aliases dis_builtins dis_functions
dis_functions_source dis_galiases dis_patchars dis_reswords dis_saliases fignore fpath
funcfiletrace funcsourcetrace funcstack functions functions_source functrace galiases history
historywords jobdirs jobstates jobtexts keymaps mailpath manpath module_path modules nameddirs
options parameters patchars path pipestatus psvar reswords saliases signals status termcap
terminfo userdirs usergroups watch widgets zsh_eval_context zsh_scheduled_events
"""
SPECIAL = dict.fromkeys(_BASH.split(), "bash") | dict.fromkeys(_ZSH.split(), "zsh")


def quote(value: str) -> str:
    """The value as one word of a POSIX shell, bare where no shell gives any of it a meaning."""
    if value and PLAIN.issuperset(value):
        return value
    return "'" + value.replace("'", "'\\''") + "'"


def check_settable(name: str) -> None:
    """An error if a shell gives the name a meaning of its own."""
    if name in SPECIAL:
        raise refused(
            name,
            f"{SPECIAL[name]} keeps this name for itself, so a sourced file cannot set it",
            "choose another name",
        )


def exports(variables: Variables) -> str:
    """One `export` line per variable (a value with line breaks spans several)."""
    lines = []
    for name, value in variables:
        check_settable(name)
        lines.append(f"export {name}={quote(value)}\n")
    return "".join(lines)

"""Whose a process is, as far as the table of processes and the records prove it.

Proof is one of: recorded by `corral run`; descent from a recorded process; the mark together with
a chain of parents that leads to its owner's anchor, or that was cut off from its parents and has
no terminal. A mark that names another owner defeats descent. A marked process that fails the
chain is doubted, which the judge reads as UNKNOWN.
"""

from __future__ import annotations

from corral.decide.protected import is_init, may_be_shared, shared_runtime, status_only
from corral.model.resource import Kind, Mark, Proof, Sighting
from corral.model.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from corral.model.process import ProcessIdentity, ProcessRow, ProcessTable
    from corral.model.record import Record


class Root(NamedTuple):
    """A process that was recorded: what `corral run` started, a descendant, or a supervisor."""

    identity: ProcessIdentity
    record: str
    role: str
    name: str
    owner: str
    session: str | None
    environment: str | None

    @classmethod
    def of(cls, record: Record, identity: ProcessIdentity) -> Root:
        """The root that a record names; `identity` is the record's, decoded."""
        return cls(
            identity,
            record.id,
            record.role,
            record.name,
            record.owner,
            record.session,
            record.environment,
        )


class Anchor(NamedTuple):
    """The anchor of an epoch. One whose epoch was `released` still proves, but protects nothing."""

    identity: ProcessIdentity
    owner: str
    released: bool = False


class Look(NamedTuple):
    """All that a judgement of processes rests on: one table, the records, the live anchors."""

    table: ProcessTable
    roots: tuple[Root, ...]
    anchors: tuple[Anchor, ...]
    extra_programs: frozenset[str] = frozenset()


class _Attribution(NamedTuple):
    mark: Mark
    root: Root | None
    doubt: str = ""


class _Kin:
    """The look, indexed: live roots and anchors by pid, and who must not be touched."""

    def __init__(self, look: Look) -> None:
        self.table = look.table
        self.rows: Mapping[int, ProcessRow] = look.table.rows
        self.extra = look.extra_programs
        self._above: dict[int, tuple[ProcessRow, ...]] = {}
        find = look.table.find
        self.roots = {r.identity.pid: r for r in look.roots if find(r.identity) is not None}
        self.anchors: dict[int, frozenset[str]] = {}
        self.protecting: set[int] = set()
        for anchor in look.anchors:
            if find(anchor.identity) is not None:
                pid = anchor.identity.pid
                self.anchors[pid] = self.anchors.get(pid, frozenset()) | {anchor.owner}
                if not anchor.released:
                    self.protecting.add(pid)
        self.judging = frozenset((look.table.self_pid, *self._pids_above(look.table.self_pid)))
        self.above_anchors = frozenset(
            pid for anchor in self.protecting for pid in self._pids_above(anchor)
        )
        self._shown: dict[int, str | None] = {}

    def above(self, pid: int) -> tuple[ProcessRow, ...]:
        """The rows above a process, nearest first."""
        if pid not in self._above:
            self._above[pid] = self.table.above(pid)
        return self._above[pid]

    def _pids_above(self, pid: int) -> tuple[int, ...]:
        return tuple(row.pid for row in self.above(pid))

    def status_only(self, row: ProcessRow) -> str | None:
        if row.pid not in self._shown:
            self._shown[row.pid] = status_only(row, self.extra)
        return self._shown[row.pid]


def relevant(look: Look) -> frozenset[int]:
    """The processes that a judgement may need in full.

    Those with a mark, those below a record, and all that stand above these; also what may be part
    of the shared runtime.
    """
    children: dict[int, list[int]] = {}
    found = set()
    for row in look.table.rows.values():
        children.setdefault(row.ppid, []).append(row.pid)
        if row.mark or may_be_shared(row.comm):
            found.add(row.pid)
    waiting = [root.identity.pid for root in look.roots if look.table.find(root.identity)]
    while waiting:
        pid = waiting.pop()
        found.add(pid)
        waiting += children.pop(pid, ())
    for pid in tuple(found):
        found.update(row.pid for row in look.table.above(pid))
    return frozenset(found)


def attribute_processes(look: Look) -> tuple[Sighting, ...]:
    """Every process that is recorded, descends from a record or carries a mark, by pid.

    And the shared runtime: container engines, their machines, tunnels, whoever started them.
    """
    kin = _Kin(look)
    found = []
    for pid in sorted(kin.rows):
        row = kin.rows[pid]
        if row.dead:
            continue
        attribution = _attribute(kin, row)
        if attribution is not None:
            found.append(_sighting(kin, row, attribution))
        elif may_be_shared(row.comm):
            category = shared_runtime(row, kin.extra)
            if category is not None:
                why = (f"{category}: only ever shown",)
                found.append(_bare(kin, row)._replace(shared=True, protections=why))
    return tuple(found)


def sight_process(look: Look, pid: int) -> Sighting:
    """One process of the table, marked or not, with what protects it."""
    kin = _Kin(look)
    row = kin.rows[pid]
    attribution = _attribute(kin, row)
    if attribution is not None:
        return _sighting(kin, row, attribution)
    return _bare(kin, row)


def _bare(kin: _Kin, row: ProcessRow) -> Sighting:
    return _sighting(kin, row, _Attribution(Mark(Proof.RECORDED), None))._replace(marks=())


def _attribute(kin: _Kin, row: ProcessRow) -> _Attribution | None:
    nearest = row.mark
    root = kin.roots.get(row.pid)
    if root is not None:
        return _Attribution(_mark(root, Proof.RECORDED), root)
    for node in kin.above(row.pid):
        root = kin.roots.get(node.pid)
        if root is not None and nearest in {None, root.owner}:
            return _Attribution(_mark(root, Proof.DESCENT), root)
        if root is not None:
            break
        nearest = nearest or node.mark
    if not row.mark:
        return None
    return _by_mark(kin, row, row.mark)


def _mark(root: Root, proof: Proof) -> Mark:
    return Mark(proof, owner=root.owner, environment=root.environment)


def _by_mark(kin: _Kin, row: ProcessRow, owner: str) -> _Attribution:
    if any(owner in kin.anchors.get(node.pid, frozenset()) for node in kin.above(row.pid)):
        return _Attribution(Mark(Proof.CHAIN, owner=owner), None)
    top = row
    parent = kin.rows.get(row.ppid)
    for node in kin.above(row.pid):
        parent = node
        if node.mark != owner:
            break
        top, parent = node, kin.rows.get(node.ppid)
    mark = Mark(Proof.DETACHED, owner=owner)
    if parent is None and top.ppid > 0:
        return _Attribution(mark, None, f"its parent {top.ppid} could not be seen")
    if parent is not None and not _hands_over(kin, parent):
        return _Attribution(
            mark,
            None,
            f"carries the mark of {owner}, but its parents lead to {parent.comm} "
            f"({parent.pid}), not to that owner's anchor",
        )
    if row.tty or top.tty:
        return _Attribution(
            mark, None, f"carries the mark of {owner}, but has a terminal that outlived its parents"
        )
    return _Attribution(mark, None)


def _hands_over(kin: _Kin, parent: ProcessRow) -> bool:
    root = kin.roots.get(parent.pid)
    return is_init(parent) or (root is not None and root.role == "supervisor")


def _sighting(kin: _Kin, row: ProcessRow, attribution: _Attribution) -> Sighting:
    root = attribution.root
    identity = root.identity if root and root.identity.pid == row.pid else kin.table.identity(row)
    doubts = [attribution.doubt] if attribution.doubt else []
    if row.namespace is not None and row.namespace != kin.table.pid_namespace:
        doubts.append("it lives in another pid namespace")
    elif row.namespace is None and attribution.mark.proof is not Proof.RECORDED:
        doubts.append("its pid namespace cannot be read")
    own = root if root and root.identity.pid == row.pid else None
    return Sighting(
        kind=Kind.PROCESS,
        id=str(row.pid),
        name=own.name if own and own.name else describe(row),
        backend="process",
        state=_state(row, own),
        created_at=None,
        identity=identity_pairs(identity),
        marks=(attribution.mark,),
        doubts=tuple(doubts),
        protections=_protections(kin, row, attribution.mark.owner),
        kept=row.keep,
        record=root.record if root else None,
        ancestors=tuple((node.pid, node.start_ticks) for node in kin.above(row.pid)),
    )


def describe(row: ProcessRow) -> str:
    """What a person knows the process by: its command, cut."""
    text = " ".join(row.argv) if row.argv else f"[{row.comm}]"
    text = "".join(c if c.isprintable() else "?" for c in text)
    limit = 80
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def identity_pairs(identity: ProcessIdentity) -> tuple[tuple[str, str | int], ...]:
    """The pairs that pin a process, in a fixed order, without the inode that not all looks know."""
    return (
        ("pid", identity.pid),
        ("start_ticks", identity.start_ticks),
        ("boot_id", identity.boot_id),
        ("pid_namespace", identity.pid_namespace),
    )


def _state(row: ProcessRow, own: Root | None) -> str:
    if own is not None and own.role == "supervisor":
        return "supervisor"
    return {"T": "stopped", "t": "traced", "D": "blocked"}.get(row.state, "running")


def _protections(kin: _Kin, row: ProcessRow, owner: str | None) -> tuple[str, ...]:
    found = []
    if row.pid in kin.judging:
        found.append("it is the judging command or stands above it")
    if row.uid != kin.table.uid:
        found.append("it runs as another user")
    if row.pid in kin.protecting:
        found.append("it is the live anchor of a worker")
    if row.pid in kin.above_anchors:
        found.append("a worker's live anchor stands below it")
    if row.argv == () and not row.exe:
        found.append("it belongs to the kernel")
    if is_init(row):
        found.append("it is where orphans are handed to")
    category = kin.status_only(row)
    if category is not None:
        found.append(f"{category}: only ever shown")
    found.extend(_protection_above(kin, row, owner))
    return tuple(found)


def _protection_above(kin: _Kin, row: ProcessRow, owner: str | None) -> tuple[str, ...]:
    """What protects from above, up to the owner's own anchor or recorded process."""
    if row.pid in kin.roots:
        return ()
    for node in kin.above(row.pid):
        owners = kin.anchors.get(node.pid, frozenset())
        if owner in owners:
            return ()
        if node.pid in kin.protecting:
            return (f"it stands below another worker's live anchor ({node.pid})",)
        category = kin.status_only(node)
        if category is not None:
            return (f"it stands below {node.comm} ({node.pid}), a {category}",)
        root = kin.roots.get(node.pid)
        if root is not None and root.owner == owner:
            return ()
    return ()

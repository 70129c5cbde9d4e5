"""Whose a process is: records, descent, marks and chains of parents, on made-up tables."""

from __future__ import annotations

from corral.decide.ancestry import Anchor, Look, Root, attribute_processes, sight_process
from corral.model.process import ProcessIdentity, ProcessRow, ProcessTable
from corral.model.resource import Proof, Sighting

ME, OTHER = "own-me", "own-other"
JUDGE = 900


def row(
    pid: int,
    ppid: int,
    *,
    mark: str | None = None,
    comm: str = "python3",
    argv: tuple[str, ...] | None = None,
    tty: int = 0,
    uid: int = 1000,
    state: str = "S",
    namespace: int | None = 7,
    keep: bool = False,
    exe: str = "",
) -> ProcessRow:
    return ProcessRow(
        pid,
        ppid,
        pid * 10,
        uid,
        pid,
        tty,
        state,
        comm,
        exe,
        argv or (comm,),
        mark,
        True,
        keep,
        namespace,
    )


def identity(pid: int, *, ticks: int | None = None) -> ProcessIdentity:
    return ProcessIdentity(pid, pid * 10 if ticks is None else ticks, "boot", 7)


def root(pid: int, owner: str = ME, role: str = "service", ticks: int | None = None) -> Root:
    return Root(identity(pid, ticks=ticks), f"rec-{pid}", role, "web", owner, None, "env")


def look(
    *rows: ProcessRow,
    roots: tuple[Root, ...] = (),
    anchors: tuple[Anchor, ...] = (),
) -> dict[int, Sighting]:
    every = [row(1, 0, comm="init", uid=0), row(JUDGE, 1, comm="corral"), *rows]
    table = ProcessTable({r.pid: r for r in every}, "boot", 7, JUDGE, 1000)
    found = attribute_processes(Look(table, roots, anchors, frozenset({"mydaemon"})))
    return {int(s.id): s for s in found}


def removable(sighting: Sighting) -> bool:
    return bool(sighting.marks) and not sighting.doubts and not sighting.protections


def test_a_recorded_process_and_what_descends_from_it_are_the_owners() -> None:
    seen = look(row(10, 1), row(11, 10), row(12, 11), row(20, 1), roots=(root(10),))
    assert sorted(seen) == [10, 11, 12]
    assert [seen[p].marks[0].proof for p in (10, 12)] == [Proof.RECORDED, Proof.DESCENT]
    assert all(removable(s) for s in seen.values())
    assert seen[12].ancestors[:2] == ((11, 110), (10, 100))
    assert seen[10].name == "web"
    assert seen[12].marks[0].environment == "env"


def test_a_recycled_pid_is_not_the_recorded_process() -> None:
    assert look(row(10, 1), row(11, 10), roots=(root(10, ticks=99),)) == {}


def test_zombies_are_not_seen() -> None:
    assert look(row(10, 1, state="Z"), roots=(root(10),)) == {}


def test_a_mark_of_another_owner_defeats_descent() -> None:
    seen = look(
        row(10, 1), row(11, 10, mark=OTHER), row(12, 11), row(13, 10, mark=ME), roots=(root(10),)
    )
    assert sorted(seen) == [10, 11, 13]
    assert seen[11].marks[0].owner == OTHER
    assert seen[11].doubts
    assert seen[13].marks[0].owner == ME


def test_the_mark_counts_below_the_owners_anchor() -> None:
    anchors = (Anchor(identity(10), ME),)
    seen = look(row(10, 1), row(11, 10), row(12, 11, mark=ME), row(13, 12), anchors=anchors)
    assert sorted(seen) == [12]
    assert seen[12].marks[0].proof is Proof.CHAIN
    assert removable(seen[12])


def test_the_mark_counts_where_it_was_handed_to_init_without_a_terminal() -> None:
    seen = look(row(12, 1, mark=ME), row(13, 12, mark=ME))
    assert seen[13].marks[0].proof is Proof.DETACHED
    assert removable(seen[12])
    assert removable(seen[13])


def test_the_mark_is_doubted_with_a_terminal() -> None:
    seen = look(row(12, 1, mark=ME, tty=5), row(13, 12, mark=ME), row(14, 1, mark=ME))
    assert seen[12].doubts
    assert seen[13].doubts
    assert not seen[14].doubts


def test_the_mark_is_doubted_where_the_parents_lead_elsewhere() -> None:
    seen = look(row(30, 1, comm="bash"), row(12, 30, mark=ME))
    assert "bash (30)" in seen[12].doubts[0]


def test_the_mark_is_doubted_where_the_parent_cannot_be_seen() -> None:
    seen = look(row(12, 777, mark=ME))
    assert "777" in seen[12].doubts[0]


def test_a_supervisor_hands_over_like_init() -> None:
    supervisor = root(30, OTHER, "supervisor")
    seen = look(row(30, 1), row(12, 30, mark=ME), roots=(supervisor,))
    assert seen[12].marks[0] == (Proof.DETACHED, ME, None, None)
    assert removable(seen[12])
    assert seen[30].state == "supervisor"


def test_systemd_of_the_user_hands_over_like_init() -> None:
    manager = row(30, 1, comm="systemd", argv=("/lib/systemd/systemd", "--user"))
    assert removable(look(manager, row(12, 30, mark=ME))[12])


def test_a_program_that_wiped_its_environment_is_found_by_descent() -> None:
    seen = look(row(10, 1, mark=ME), row(11, 10, mark=None), roots=(root(10),))
    assert removable(seen[11])


def test_a_shown_program_and_all_below_it_are_never_touched() -> None:
    seen = look(
        row(10, 1),
        row(11, 10, comm="tmux: server"),
        row(12, 11, comm="bash"),
        row(13, 10, comm="mydaemon"),
        row(14, 10, comm="chrome"),
        row(15, 10, comm="chrome", argv=("chrome", "--headless=new")),
        roots=(root(10),),
    )
    assert removable(seen[10])
    assert [p for p in (11, 12, 13, 14) if removable(seen[p])] == []
    assert removable(seen[15])


def test_what_stands_above_the_anchor_or_the_record_protects_nothing() -> None:
    seen = look(
        row(5, 1, comm="tmux: server"),
        row(10, 5, comm="claude"),
        row(11, 10, mark=ME),
        row(20, 5),
        row(21, 20),
        roots=(root(20),),
        anchors=(Anchor(identity(10), ME),),
    )
    assert removable(seen[11])
    assert removable(seen[20])
    assert removable(seen[21])


def test_a_recorded_program_that_is_only_shown_protects_what_is_below() -> None:
    seen = look(row(10, 1, comm="tmux: server"), row(11, 10), roots=(root(10),))
    assert not removable(seen[10])
    assert not removable(seen[11])


def test_live_anchors_and_what_is_below_another_owners_are_never_touched() -> None:
    seen = look(
        row(10, 1),
        row(20, 10, comm="claude", mark=ME),
        row(21, 20, mark=ME),
        row(22, 21, mark=OTHER),
        roots=(root(10),),
        anchors=(Anchor(identity(20), OTHER),),
    )
    assert not removable(seen[10])
    assert not removable(seen[20])
    assert not removable(seen[21])
    assert removable(seen[22])


def test_an_anchor_that_is_gone_proves_nothing() -> None:
    anchors = (Anchor(identity(30, ticks=1), ME), Anchor(identity(31), ME))
    seen = look(row(30, 1, comm="bash"), row(12, 30, mark=ME), anchors=anchors)
    assert seen[12].doubts


def test_a_released_anchor_proves_but_does_not_protect() -> None:
    anchors = (Anchor(identity(20), OTHER, released=True),)
    seen = look(
        row(10, 1), row(20, 10), row(21, 20, mark=OTHER), roots=(root(10),), anchors=anchors
    )
    assert removable(seen[10])
    assert removable(seen[20])
    assert seen[21].marks[0].proof is Proof.CHAIN
    assert removable(seen[21])


def test_the_judging_command_and_what_is_above_it_are_never_touched() -> None:
    rows = {
        r.pid: r
        for r in (row(1, 0), row(10, 1, mark=ME), row(11, 10, mark=ME), row(JUDGE, 11, mark=ME))
    }
    table = ProcessTable(rows, "boot", 7, JUDGE, 1000)
    assert not any(removable(s) for s in attribute_processes(Look(table, (root(10),), ())))


def test_other_users_and_other_namespaces_are_never_touched() -> None:
    seen = look(
        row(10, 1),
        row(11, 10, uid=0),
        row(12, 10, namespace=8),
        row(13, 10, namespace=None),
        roots=(root(10),),
    )
    assert "another user" in seen[11].protections[0]
    assert "namespace" in seen[12].doubts[0]
    assert seen[13].doubts


def test_the_first_process_is_never_touched() -> None:
    every = {1: row(1, 0, mark=ME), JUDGE: row(JUDGE, 0)}
    table = ProcessTable(every, "boot", 7, JUDGE, 1000)
    (seen,) = attribute_processes(Look(table, (), ()))
    assert not removable(seen)


def test_a_loop_in_a_torn_table_ends() -> None:
    seen = look(row(10, 11, mark=ME), row(11, 10, mark=ME))
    assert seen[10].doubts or seen[10].marks


def test_keeping_is_read_from_the_process() -> None:
    assert look(row(10, 1, keep=True), roots=(root(10),))[10].kept


def test_states_are_words() -> None:
    seen = look(row(10, 1, state="T"), row(11, 10, state="D"), roots=(root(10),))
    assert (seen[10].state, seen[11].state) == ("stopped", "blocked")


def test_names_show_no_control_characters_and_are_cut() -> None:
    hostile = row(11, 10, argv=("x\x1b[2J", "y" * 200))
    name = look(row(10, 1), hostile, roots=(root(10),))[11].name
    assert "\x1b" not in name
    assert len(name) == 80


def test_any_process_can_be_sighted_with_what_protects_it() -> None:
    rows = {1: row(1, 0), JUDGE: row(JUDGE, 1), 10: row(10, 1), 11: row(11, 1, comm="dockerd")}
    made = Look(ProcessTable(rows, "boot", 7, JUDGE, 1000), (root(10),), ())
    assert sight_process(made, 10).marks
    bare = sight_process(made, 11)
    assert bare.marks == ()
    assert "container runtime" in bare.protections[0]


def test_the_kernels_own_threads_are_never_touched() -> None:
    thread = row(12, 2)._replace(argv=(), exe="")
    seen = look(row(2, 0)._replace(argv=(), exe=""), thread, roots=(root(2),))
    assert not removable(seen[2])
    assert not removable(seen[12])

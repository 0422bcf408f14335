"""Sessions, outbox and verdicts over the real database: round trips, bounds, retention, one prompt."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from daemon.core.errors import Unavailable
from daemon.core.orders import SendFeedback, ShowToast
from daemon.core.session import Phase, Progress, Session
from daemon.core.transcript import Model
from daemon.core.verdict import Missing, Severity, Verdict
from daemon.store import ledger, outbox, sessions, verdicts
from daemon.store.db import Database
from daemon.store.outbox import Outbox, Stored, order_id
from daemon.store.sessions import KEPT, Sessions
from daemon.store.verdicts import Verdicts

NOW = 1_700_000_000_000
DAY = 86_400_000


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    db = Database(tmp_path / "db", lambda: NOW)
    yield db
    db.close()


async def store(db: Database, kept: Sessions, now: int = NOW) -> None:
    states = kept.unsaved()
    await db.commit(kept.statement(states, now))
    kept.saved(states)


def feedback(session: str = "ses_a", turn: str = "msg_2", kind: str = "feedback") -> Stored:
    order = SendFeedback(session, "msg_1", turn, "Go on", "build", Model("p", "m"))
    return Stored(order_id(session, turn, kind), session, "sent", "host", NOW, order)


_TEXT = st.text(max_size=20)
_INT = st.integers(-(2**63), 2**63 - 1)
_BY_NAME = {
    "phase": st.sampled_from(get_args(Phase)),
    "open_items": st.lists(_TEXT, max_size=3).map(tuple),
    "waiting": st.lists(_TEXT, max_size=3).map(tuple),
    "background": st.lists(_TEXT, max_size=3).map(tuple),
    "prompts": st.lists(_INT, max_size=3).map(tuple),
}
_PROGRESS = st.builds(Progress, _TEXT, _TEXT, st.lists(_TEXT, max_size=3).map(tuple), _TEXT)
_BY_TYPE = {str: _TEXT, bool: st.booleans(), int: _INT, Progress: _PROGRESS}
_SESSIONS = st.builds(
    Session,
    **{
        name: _BY_NAME[name]
        if name in _BY_NAME
        else _BY_TYPE[str if name == "id" else type(getattr(Session(id=""), name))]
        for name in Session.__struct_fields__
    },
)


@pytest.mark.shows("I42")
@given(state=_SESSIONS)
@pytest.mark.slow("a database is made for each example")
def test_a_session_comes_back_as_it_was(state: Session) -> None:
    """Whatever a session holds is read again after a restart, field by field."""
    import asyncio

    with tempfile.TemporaryDirectory() as folder:
        db = Database(Path(folder) / "db", lambda: NOW)
        kept = Sessions(db)
        kept.put(state)
        asyncio.run(store(db, kept))
        assert Sessions(db).get(state.id) == state
        db.close()


@pytest.mark.shows("I44")
async def test_ten_thousand_sessions_in_bounded_memory(db: Database) -> None:
    """500 stay in memory, the others are read again when they are asked for."""
    kept = Sessions(db)
    for n in range(10_000):
        kept.put(Session(id=f"ses_{n:05d}", directory="/w", task=f"msg_{n}"))
        if n % 100 == 99:
            await store(db, kept)
            assert len(kept.in_memory()) <= KEPT
    assert kept.unsaved() == {}
    for n in (0, 1, 5_000, 9_999):
        found = kept.get(f"ses_{n:05d}")
        assert found is not None
        assert found.task == f"msg_{n}"
    assert len(kept.in_memory()) <= KEPT
    assert len(kept.recent(50)) == 50


@pytest.mark.shows("I42")
def test_what_is_not_stored_yet_is_never_forgotten(db: Database) -> None:
    """While the disk is full states pile up in memory instead of being dropped."""
    kept = Sessions(db)
    for n in range(3 * KEPT):
        kept.put(Session(id=f"ses_{n}", task=f"msg_{n}"))
    assert len(kept.unsaved()) == 3 * KEPT
    found = kept.get("ses_0")
    assert found is not None
    assert found.task == "msg_0"


@pytest.mark.shows("I42")
async def test_a_change_during_the_commit_stays_unsaved(db: Database) -> None:
    """What changes while the commit runs is stored by the next one."""
    kept = Sessions(db)
    kept.put(Session(id="ses_a", task="msg_1"))
    states = kept.unsaved()
    kept.put(Session(id="ses_a", task="msg_2"))
    await db.commit(kept.statement(states, NOW))
    kept.saved(states)
    assert [s.task for s in kept.unsaved().values()] == ["msg_2"]


@pytest.mark.shows("I43")
@pytest.mark.parametrize(
    "body", [b"", b"{", b"null", b"[]", b'{"id": 5}', b'{"id": "ses_bad", "idle_at": "x"}']
)
async def test_a_row_that_can_not_be_read(db: Database, body: bytes) -> None:
    """A damaged row (a flipped bit, a hand) costs its own session's state, nothing more."""
    kept = Sessions(db)
    kept.put(Session(id="ses_good", directory="/w", recheck=True))
    kept.put(Session(id="ses_bad", directory="/w"))
    await store(db, kept)
    await db.commit(("UPDATE sessions SET state = ? WHERE id = 'ses_bad'", [(body,)]))
    again = Sessions(db)
    assert again.get("ses_bad") in {None, Session(id="ses_bad", directory="/w")}
    assert "ses_good" in {s.id for s in again.recent(10)}
    assert again.open_in("/w", 0, 9) == ["ses_good"]
    again.put(Session(id="ses_bad"))
    await db.commit(again.aside(NOW), again.statement(again.unsaved(), NOW))
    if Sessions(db).get("ses_bad") == Session(id="ses_bad"):
        kept_aside = db.read("SELECT id, body FROM unreadable")
        assert kept_aside in ([("ses_bad", body)], []), "what could not be read is kept"


@pytest.mark.shows("I42")
async def test_one_prompt_for_a_turn(db: Database) -> None:
    """The second prompt of a turn fails its whole commit, whoever sends it."""
    await db.commit(outbox.add([feedback()]))
    verdict = Verdict("ses_a", "msg_1", "msg_9", "incomplete", NOW)
    with pytest.raises(Unavailable):
        await db.commit(verdicts.add(verdict, "/w"), outbox.add([feedback()]))
    assert Verdicts(db).newest("ses_a") == []
    assert len(Outbox(db).open("ses_a")) == 1
    await db.commit(outbox.add([feedback(turn="msg_4"), feedback(session="ses_b")]))
    assert len(Outbox(db).open()) == 3


@pytest.mark.shows("I21")
async def test_one_verdict_for_a_turn(db: Database) -> None:
    """Exactly one final verdict per turn, in the store too."""
    verdict = Verdict("ses_a", "msg_1", "msg_2", "complete", NOW, Severity.LOW, missing=(Missing("x", "E1"),))
    await db.commit(verdicts.add(verdict, "/w"))
    with pytest.raises(Unavailable):
        await db.commit(verdicts.add(verdict, "/w"))
    (found,) = Verdicts(db).newest("ses_a")
    assert (found.verdict, found.directory) == (verdict, "/w")
    assert [v.verdict for v in Verdicts(db).unfiled()] == [verdict]
    await db.commit(verdicts.filed(verdict))
    assert Verdicts(db).unfiled() == []


@pytest.mark.shows("I42")
async def test_orders_come_back_as_they_were(db: Database) -> None:
    """Both kinds of stored orders survive a restart."""
    toast = ShowToast("ses_a", "Task complete — 💥", "success")
    row = Stored(order_id("ses_a", "msg_2", "toast"), "ses_a", "pending", "", NOW + 1, toast)
    await db.commit(outbox.add([feedback(), row]))
    assert Outbox(db).open() == [feedback(), row]


@pytest.mark.shows("I44")
async def test_retention(db: Database) -> None:
    """Sessions, orders and ids 90 days; verdicts and ledger 400 days; the rest is kept."""
    old, older = NOW - 91 * DAY, NOW - 401 * DAY
    kept = Sessions(db)
    for n, at in enumerate((NOW, old, older)):
        kept.put(Session(id=f"ses_{n}"))
        await store(db, kept, at)
        entry = ledger.Entry(at, "judge", f"ses_{n}", "offline", "", 0, 0, None, 1, "ok")
        order = replace(feedback(f"ses_{n}"), created=at)
        await db.commit(
            sessions.mark({f"host_{n}": n}, at),
            sessions.judge_created(f"judge_{n}", "/w", at),
            outbox.add([order]),
            verdicts.add(Verdict(f"ses_{n}", "t", "m", "complete", at), "/w"),
            ledger.add(entry),
        )
    for _ in range(2):  # at most a day's worth at once
        await db.commit(*sessions.prune(NOW), *outbox.prune(NOW), verdicts.prune(NOW), ledger.prune(NOW))

    def count(table: str) -> int:
        return int(db.read(f"SELECT count(*) FROM {table}")[0][0])

    tables = ("sessions", "instances", "judge_sessions", "outbox", "verdicts", "ledger")
    assert {t: count(t) for t in tables} == {
        "sessions": 1,
        "instances": 1,
        "judge_sessions": 1,
        "outbox": 1,
        "verdicts": 2,
        "ledger": 2,
    }


@pytest.mark.shows("I40", "I42")
async def test_switches_and_marks_survive(db: Database) -> None:
    """The project switch and the ``seq`` mark are read at the next start; siblings are not off."""
    kept = Sessions(db)
    await db.commit(kept.switch_folder("/w/one", on=False, now=NOW)[1], sessions.mark({"host": 41}, NOW))
    await db.commit(sessions.mark({"host": 42}, NOW))
    again = Sessions(db)
    assert again.is_off("/w/one")
    assert not again.is_off("/w/one-and-a-half")
    assert [again.off_by(d) for d in ("/w/one/a/b", "/w", "/", "")] == ["/w/one", "", "", ""]
    assert (again.seq("host"), again.seq("nobody")) == (42, 0)
    await db.commit(again.switch_folder("/w/one", on=True, now=NOW)[1])
    assert not Sessions(db).is_off("/w/one")


async def test_a_beginning_means_a_persons_own_session(db: Database) -> None:
    """Sub-agents and judges are meant only where it begins no other, or by their whole id."""
    kept = Sessions(db)
    for one in (
        Session(id="ses_ab1"),
        Session(id="ses_ab2", judge=True),
        Session(id="ses_ab3", parent="ses_ab1"),
        Session(id="ses_b1", parent="ses_ab1"),
    ):
        kept.put(one)
    await store(db, kept)
    assert [kept.only(x) for x in ("ses_a", "ses_ab2", "ses_b", "x")] == ["ses_ab1", "ses_ab2", "ses_b1", ""]

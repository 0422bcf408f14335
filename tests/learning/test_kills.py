"""kill -9 between any two steps of a change of a person's files, and two who change them at once: all kinds.

What a look back and a reflexion store is killed at each step in ``playbook/test_look_back.py`` and
``lessons/test_feature.py``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from daemon.learning.playbook.points import each
from daemon.learning.rules.places import those_that_count
from harness.machine.sandbox import REPO
from tests.learning.rules.projects import Machine

MOST = 30  # renames of one change; there are fewer
VIEWS = "Views convert dates."
POINT = """
with rules.playbook.change() as edit:
    point = {'name': edit.names.take('oth'), 'text': TEXT, 'helpful': 0, 'harmful': 0}
    edit.playbook['sections']['OTHERS'].append(point)
    edit.what, edit.approved = 'added', [TEXT]
"""
WORD = "from daemon.learning.playbook.project_playbook import take_back, vouch\n"
CHANGES = {
    "a rule is learned": "rules.learn('Use bun')",
    "a rule replaces one": ("rules.learn('Use bun', signals=['sig-20251120-001'], replaces=['rule-001'])"),
    "a rule is archived": "rules.unlearn('rule-001')",
    "a rule is removed": "rules.unlearn('rule-001', delete=True)",
    "a rule is reworded": "rules.reword('rule-001', 'Use npm 11')",
    "a rule is undone": "rules.undo()",
    "a preference is learned": "rules.learn('Prefer tables', soft=True)",
    "a preference is archived": "rules.unlearn('rule-002')",
    "a point is added": f"TEXT = 'Tests need redis.'{POINT}",
    "a point is approved": f"{WORD}vouch(rules.playbook, 'pat-001', 'Use pathlib.')",
    "a point is taken back": f"{WORD}take_back(rules.playbook, rules.journal, 'oth-001', '{VIEWS}')",
    "a point is undone": "rules.playbook.undo(0)",
}


def lived(root: Path) -> Machine:
    """A project with a rule, a preference, a point that came with it, and one that the person added."""
    one = Machine(root)
    one.points("Use pathlib.")
    one.learn("Use npm")
    one.learn("Prefer short answers", soft=True)
    one.killed(0, f"TEXT = '{VIEWS}'{POINT}")
    one.signals("use bun")
    return one


def state_of(one: Machine) -> tuple[object, ...]:
    """What stands, and what a person vouches for."""
    look, book = one.rules.look(), one.rules.playbook
    known = book.known()
    return (
        tuple((r.id, r.text, r.active) for r in look.rows),
        [s["status"] for s in look.journal["signals"]],
        tuple((p.text, p.known) for p in those_that_count(one.project, one.rules.journal.state)),
        tuple((p["text"], known.is_approved(p["text"])) for _, p in each(book.read().playbook)),
    )


def goes_on(one: Machine) -> tuple[object, ...]:
    """What stands after the next changes, which finish or forget what a kill left; each can be undone."""
    one.learn("Run lint")
    one.killed(0, f"TEXT = 'The linter is slow.'{POINT}")
    found = state_of(one)
    one.rules.undo()
    one.rules.playbook.undo(0)
    return found


@pytest.mark.shows("I42", "RULES-12")
@pytest.mark.slow("kills a process between any two of its steps")
@pytest.mark.parametrize("kind", CHANGES)
def test_killed_between_any_two_steps(tmp_path: Path, kind: str) -> None:
    """With the next change everything is as if it had not been made, or as if it had; never half."""
    before = goes_on(lived(tmp_path / "before"))
    done = lived(tmp_path / "done")
    assert not done.killed(MOST, CHANGES[kind]), "it has fewer steps"
    after, seen = goes_on(done), set[str]()
    assert after != before
    for at in range(1, MOST):
        one = lived(tmp_path / str(at))
        if not one.killed(at, CHANGES[kind]):
            break
        found = goes_on(one)
        assert found in (before, after), at
        seen.add("before" if found == before else "after")
    assert "before" in seen


WRITER = """
import sys
from pathlib import Path
from daemon.clock import SystemClock
from daemon.core.errors import ReflectdError
from daemon.learning.rules.learned_rules import LearnedRules
project, state, who, kind = sys.argv[1:]
env = {'HOME': str(Path(project).parent), 'PATH': '/nonexistent'}
rules = LearnedRules(project, Path(state), SystemClock(), env)
for i in range(6):
    TEXT = f'Number {i} of {who}'
    while True:
        try:
            if kind == 'point':
                with rules.playbook.change() as edit:
                    name = edit.names.take('oth')
                    point = {'name': name, 'text': TEXT, 'helpful': 0, 'harmful': 0}
                    edit.playbook['sections']['OTHERS'].append(point)
            else:
                rules.learn(TEXT, soft=kind == 'preference')
            break
        except ReflectdError as error:
            print(error)
"""


@pytest.mark.shows("I45", "LEARN-04")
@pytest.mark.slow("two processes that write into one project")
@pytest.mark.parametrize("states", [1, 2], ids=["one person", "two daemons"])
@pytest.mark.parametrize("kind", ["rule", "preference", "point"])
def test_two_at_once(tmp_path: Path, kind: str, states: int) -> None:
    """Each reads what the other wrote: all texts are there, each with a name of its own. Two daemons share no
    lock; what one of them would overwrite is refused, and tried again.
    """
    one = Machine(tmp_path)
    run = [sys.executable, "-c", WRITER, str(one.project)]
    env = {**os.environ, "PYTHONPATH": str(REPO)}
    both = [
        subprocess.Popen([*run, str(tmp_path / f"state{i % states}"), f"writer {i}", kind], env=env)
        for i in range(2)
    ]
    assert [p.wait(timeout=300) for p in both] == [0, 0]
    wanted = {f"Number {i} of writer {w}" for i in range(6) for w in range(2)}
    if kind == "point":
        found = [(p["name"], p["text"]) for _, p in each(one.rules.playbook.read().playbook)]
    else:
        look = one.rules.look()
        found = [(r.id, r.text) for r in look.rows if r.soft is (kind == "preference")]
    assert {text for _, text in found} == wanted
    assert states == 2 or len({name for name, _ in found}) == len(found) == 12

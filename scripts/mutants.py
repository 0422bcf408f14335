"""Changes the code in small ways, one at a time, and says which changes no test notices.

    python scripts/mutants.py --seed 1 --count 120 --json first.json
    python scripts/mutants.py --json second.json --resume first.json --tests new.txt

The first line chooses 120 mutants in ``PACKAGES``, runs the tests of ``make test`` once to learn which test
reaches which mutant, then runs for each mutant the tests that reach it, cheapest first, until one fails. The
second line runs only the mutants that the first left alive, with other tests (``--all``: every mutant). The
same file in ``--json`` and ``--resume`` goes on after an interruption.

``--tests FILE`` has arguments for pytest: files, folders, node ids, ``-m "an expression"``, ``--all``.
Without it ``DEFAULT`` counts. ``--checkout DIR`` takes code and tests of another checkout that has a
``.venv``; mutants of ``--resume`` are found there by their function and text, others are "gone".

A mutant is killed when a test fails or the tests take more than ``LIMIT_S``, and the same tests pass without
it. Left out: tests with real hosts (``tests/e2e``), tests that fail without any mutant, and of a mutant's
tests those beyond ``BUDGET_S``. Everything happens in copies in the temporary folder (``mutant_copy.py``), at
low priority; the checkout is only read.
"""

from __future__ import annotations

import argparse
import ast
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import queue
import random
import shlex
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutant_changes import Finder, Mutant
from mutant_copy import Copy

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES = ("engine", "judge", "store", "evidence", "hosts")
DEFAULT = '-m "not e2e and not full" tests'
LIMIT_S = 60  # of one run with a mutant
BUDGET_S = 30  # of the tests of one mutant, as they took without it


def choose(root: Path, seed: int, count: int) -> list[Mutant]:
    """Spread over the packages, then over the lines that can be changed."""
    picked = random.Random(seed)  # noqa: S311 - not for secrets
    lines: dict[str, dict[tuple[str, int], list[Mutant]]] = {}
    sizes = Counter[str]()
    for package in PACKAGES:
        lines[package] = defaultdict(list)
        for path in sorted((root / "daemon" / package).rglob("*.py")):
            text = path.read_bytes()
            sizes[package] += len(text.splitlines())
            for m in Finder(path.relative_to(root).as_posix(), text).found:
                lines[package][m.module, m.line].append(m)
    chosen: list[Mutant] = []
    for n, package in enumerate(PACKAGES):
        share = round(count * sum(sizes[p] for p in PACKAGES[: n + 1]) / sizes.total()) - len(chosen)
        places = picked.sample(sorted(lines[package]), min(share, len(lines[package])))
        chosen += [picked.choice(lines[package][place]) for place in places]
    return chosen


def again(root: Path, rows: list[dict[str, Any]], *, everything: bool, same: bool) -> list[Mutant]:
    """The mutants of an earlier run, found in this checkout. ``same``: that run goes on."""
    known: dict[str, dict[tuple[Any, ...], Mutant]] = {}
    mutants = []
    for row in rows:
        old = Mutant(**row)
        path = root / old.module
        if old.module not in known:
            found = Finder(old.module, path.read_bytes()).found if path.exists() else []
            known[old.module] = {m.key(): m for m in found}
        new = known[old.module].get(old.key())
        if new is None:
            new = dataclasses.replace(old, result="gone")
        if same or (old.result in {"killed", "slow"} and not everything):
            new.result, new.by, new.tests, new.seconds = old.result, old.by, old.tests, old.seconds
        new.earlier = old.earlier if same else old.result
        mutants.append(new)
    return mutants


@dataclasses.dataclass
class Reach:
    """The tests that pass without a mutant, with their seconds, and which of them reach which mutant."""

    seconds: dict[str, float]
    hits: dict[int, list[tuple[str, bool]]]

    def tests(self, mutant: int) -> list[str]:
        """Those that reach it, then the others of their files; cheap files first, ``BUDGET_S`` at most."""
        exact = {test for test, whole in self.hits.get(mutant, []) if not whole}
        files = {_file(test) for test, _ in self.hits.get(mutant, [])}
        known = {test: seconds for test, seconds in self.seconds.items() if _file(test) in files}
        costs: defaultdict[str, float] = defaultdict(float)
        for test, seconds in known.items():
            costs[_file(test)] += seconds
        order = sorted(known, key=lambda t: (t not in exact, costs[_file(t)], _file(t), known[t]))
        so_far = accumulate(known[test] for test in order)
        return [test for test, seconds in zip(order, so_far, strict=True) if seconds <= BUDGET_S] or order[:1]


def _file(test: str) -> str:
    return test.partition("::")[0]


def probed(copy: Copy, mutants: list[Mutant]) -> dict[str, bytes]:
    """The modules with a call of the probe before each mutant's statement.

    A mutant that runs while its module is imported has its probes in the functions that it may matter for:
    those of its module, and all that mention a name that it defines.
    """
    places: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for number, m in enumerate(mutants):
        if m.probe is not None and m.result != "gone":
            places[m.module].add((m.probe, number))
    early = [(number, m) for number, m in enumerate(mutants) if m.probe is None and m.result != "gone"]
    for path in (copy.path / "daemon").rglob("*.py") if early else ():
        module = path.relative_to(copy.path).as_posix()
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                words = {getattr(n, "id", getattr(n, "attr", "")) for n in ast.walk(node)}
                line = node.body[1 if ast.get_docstring(node) and len(node.body) > 1 else 0].lineno
                places[module] |= {(line, n) for n, m in early if m.module == module or words & set(m.names)}
    texts = {}
    for module, found in places.items():
        lines = (copy.path / module).read_bytes().splitlines(keepends=True)
        for line, number in sorted(found, reverse=True):
            indent = lines[line - 1][: len(lines[line - 1]) - len(lines[line - 1].lstrip())]
            if not lines[line - 1].lstrip().startswith((b"def ", b"async def ", b'"""')):
                lines.insert(line - 1, indent + b'__import__("mutant_probe").hit(%d)\n' % number)
        texts[module] = b"".join(lines)
    return texts


def record(copy: Copy, mutants: list[Mutant], tests: list[str], jobs: int) -> Reach:
    """Run all tests once with probes in place of mutants. Kept for the next run of the same state."""
    texts = probed(copy, mutants)
    state = hashlib.sha256(json.dumps([tests, [m.key() for m in mutants]]).encode())
    folders = [copy.path / name for name in ("daemon", "tests", "harness")]
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        state.update(path.read_bytes())
    kept = Path(tempfile.gettempdir(), f"reflectd-mutants-{state.hexdigest()[:16]}.json")
    if not kept.exists():
        print("learning which test reaches which mutant ...", flush=True)
        before = {module: (copy.path / module).read_bytes() for module in texts}
        for module, text in texts.items():
            copy.write(module, text)
        report, hits = copy.base / "report", copy.base / "hits"
        side = ["-n", str(jobs), "--dist", "loadfile"] if jobs > 1 else []
        code = copy.pytest(*side, *tests, "--ignore=tests/e2e", MUTANTS_REPORT=str(report))
        for module, text in before.items():
            copy.write(module, text)
        ended = json.loads(report.read_text("utf-8")) if report.exists() else {}
        passed = {test: seconds for test, (ok, seconds) in ended.items() if ok}
        if code not in {0, 1} or not passed:
            raise SystemExit(f"the tests can't be run:\n{(copy.base / 'output').read_text('utf-8')[-3000:]}")
        rows = [json.loads(line) for line in hits.read_text("utf-8").splitlines()] if hits.exists() else []
        found = {"passed": passed, "hits": rows, "others": sorted(set(ended) - set(passed))}
        kept.write_text(json.dumps(found), "utf-8")
    body = json.loads(kept.read_text("utf-8"))
    print(f"{len(body['passed'])} tests pass without a mutant; not asked, as they fail or are skipped:")
    print("".join(f"    {test}\n" for test in body["others"]), end="", flush=True)
    reached = defaultdict(list)
    for number, test, whole in body["hits"]:
        reached[number].append((test, whole))
    return Reach(body["passed"], reached)


def attempt(copy: Copy, m: Mutant, tests: list[str], options: list[str]) -> None:
    """Apply one mutant, run its tests, take it back; a failure counts when the same tests pass without it."""
    m.tests = len(tests)
    if not tests:
        m.result = "not reached"
        return
    before = (copy.path / m.module).read_bytes()
    began = time.monotonic()
    result, by = "alive", ""
    for _ in range(3):
        copy.write(m.module, before[: m.start] + m.after.encode() + before[m.end :])
        code, ended = copy.picked(tests, options, LIMIT_S)
        copy.write(m.module, before)
        if code in {0, 5}:
            break
        failed = [test for test, ok in ended.items() if not ok]
        by = failed[-1] if failed else "more than 60 s" if code is None else f"pytest ends with {code}"
        code, ended = copy.picked(list(ended) or tests[: None if code is None else 1], options, LIMIT_S)
        if code == 0:
            result = "killed"
            break
        shaky = {test for test, ok in ended.items() if not ok}  # fails without the mutant too, at times
        tests = [test for test in tests if test not in shaky]
        if not shaky or not tests:
            result = "slow"  # nothing can be said: too slow without the mutant too
            break
    m.by = by if result == "killed" else ""
    m.seconds = round(time.monotonic() - began, 1)
    m.result = result


def table(mutants: list[Mutant]) -> Iterator[str]:
    """Each package, then each mutant that lives."""
    results = ("killed", "alive", "not reached", "slow", "gone")
    yield "".join(["package  mutants", *(f"{name:>13}" for name in results), "   share earlier"])
    for package in (*PACKAGES, ""):
        own = [m for m in mutants if m.module.startswith(f"daemon/{package}")]
        counts = Counter(m.result for m in own)
        there = len(own) - counts["gone"]
        before = sum(m.earlier == "killed" for m in own if m.result != "gone")
        shares = f"{counts['killed'] / (there or 1):8.0%}"
        if any(m.earlier for m in own):
            shares += f"{before / (there or 1):8.0%}"
        numbers = "".join(f"{counts[name]:13}" for name in results)
        yield f"{package or 'all':8} {len(own):7}{numbers}{shares}"
    for m in mutants:
        if m.result not in {"killed", "gone"}:
            change = f"{m.before[:100]!r} -> {m.after.strip()[:100]!r}"
            yield f"{m.result}: {m.module}:{m.line} {m.function}: {m.kind}: {change}"


def keep(target: Path, seed: int, tests: list[str], mutants: list[Mutant]) -> None:
    """Write what is known so far."""
    body = {"seed": seed, "tests": shlex.join(tests), "mutants": [dataclasses.asdict(m) for m in mutants]}
    new = target.with_suffix(".new")
    new.write_text(json.dumps(body, indent=1), "utf-8")
    new.replace(target)


def arguments() -> argparse.Namespace:
    """What was typed."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--resume", type=Path)
    parser.add_argument("--all", action="store_true", help="with --resume: the killed ones too")
    parser.add_argument("--tests", type=Path)
    parser.add_argument("--checkout", type=Path, default=Path(__file__).resolve().parents[1])
    return parser.parse_args()


def main() -> int:
    """Choose, learn which test reaches what, try each."""
    args = arguments()
    os.nice(5)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    root = args.checkout.resolve()
    tests = shlex.split(args.tests.read_text("utf-8") if args.tests else DEFAULT)
    options = [a for n, a in enumerate(tests) if a.startswith("-") or (n and tests[n - 1] in {"-m", "-k"})]
    base = Path(tempfile.mkdtemp(prefix="m")).resolve()  # short: a socket's path has 104 bytes
    base.chmod(0o711)  # PostgreSQL runs as another user
    try:
        copies = [Copy(root, root, base, "0")]
        copies += [Copy(root, copies[0].path, base, str(n)) for n in range(1, args.jobs)]
        code = copies[0].path
        if args.resume:
            rows = json.loads(args.resume.read_text("utf-8"))["mutants"]
            same = args.resume.resolve() == args.json.resolve()
            mutants = again(code, rows, everything=args.all, same=same)
        else:
            mutants = choose(code, args.seed, args.count)
        reach = record(copies[0], mutants, tests, args.jobs)
        free: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for copy in copies:
            free.put(copy)
        writing, left = threading.Lock(), [n for n, m in enumerate(mutants) if not m.result]

        def work(number: int) -> None:
            m, copy = mutants[number], free.get()
            attempt(copy, m, reach.tests(number), options)
            free.put(copy)
            with writing:
                done = sum(bool(mutants[n].result) for n in left)
                what = f"{m.module}:{m.line} {m.kind} {m.by}"
                print(f"{done}/{len(left)} {m.result} {m.seconds} s, {m.tests} tests: {what}", flush=True)
                keep(args.json, args.seed, tests, mutants)

        pool = concurrent.futures.ThreadPoolExecutor(args.jobs)
        try:
            list(pool.map(work, left))
        finally:
            pool.shutdown(cancel_futures=True)
        keep(args.json, args.seed, tests, mutants)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    print("\n".join(table(mutants)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

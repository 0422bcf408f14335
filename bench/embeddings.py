"""The model for embeddings on this machine: what it costs, and what its vectors can tell apart.

The pairs are short rules of a project, as a playbook has them. ``alike``: two ways to say one thing.
``other``: much the same words, and one of them decides. ``apart``: two things.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from operator import mul

from bench.stand import REPO, Table, median
from daemon.learning.embed import minilm

THRESHOLD = 0.85
Pairs = tuple[tuple[str, str], ...]
ALIKE: dict[str, Pairs] = {
    "chosen with": (
        ("Run the linter before each commit", "Before committing, always run the linter"),
        ("The tests need a running redis", "A redis server must be up for the test suite to pass"),
        ("Use type hints in all new functions", "New functions should be annotated with types"),
        ("Ask before adding a dependency", "Do not add new libraries without asking first"),
        (
            "Generated files in api/ must not be edited by hand",
            "Never change the generated code in api/ manually",
        ),
        ("The person prefers short commit messages", "Keep commit messages short, the user likes that"),
        ("Migrations are run with make migrate", "Use make migrate to apply database migrations"),
        ("Check the return code of subprocess calls", "Subprocess results: always verify the exit status"),
        (
            "The build fails on node 18, use node 20",
            "Node 20 is required because the build breaks on node 18",
        ),
        ("Prefer small pull requests", "Pull requests should be kept small"),
        ("Read the file before you edit it", "Always read a file before editing"),
        ("Always run pytest with -x", "Run pytest with the -x flag every time"),
    ),
    "fresh": (
        ("Secrets belong in the vault, not in env files", "Store credentials in the vault instead of .env"),
        ("The user wants answers in German", "Reply in German, as the person asked for"),
        ("CI takes twenty minutes, so test locally first", "Test on your machine first because CI is slow"),
        (
            "Regenerate the snapshots after changing a component",
            "Component changes need their snapshots regenerated",
        ),
        ("Feature flags live in flags.yaml", "flags.yaml holds all feature flags"),
        ("The date column is stored as text", "Dates are saved as strings in that column"),
        ("Mock the payment gateway in tests", "Tests should use a fake payment gateway"),
        ("The docs are built with sphinx", "Sphinx builds the documentation"),
        ("Use the logger, not print", "Write messages with the logger instead of printing them"),
        ("Releases are tagged on the main branch", "Tag a release on main"),
        (
            "The worker must be restarted after a config change",
            "After changing the configuration, restart the worker",
        ),
        ("Avoid global state in the parser", "The parser should have no global variables"),
    ),
    "unseen": (
        ("Uploads are limited to 10 MB", "A file of more than 10 MB can't be uploaded"),
        ("Name branches after the ticket", "The branch name should be that of the ticket"),
        ("Invoices are rendered by the pdf service", "The pdf service renders invoices"),
        ("The linter complains about unused imports", "Unused imports make the linter fail"),
        ("Put helper scripts in tools", "Scripts that help belong into the tools folder"),
        ("The user dislikes emojis in commit messages", "No emojis in commits, the user does not like them"),
        ("Users log in through the gateway", "The gateway handles the login of users"),
        ("Update the changelog with every feature", "Every feature needs an entry in the changelog"),
        ("Run the formatter after editing", "Format the code once you changed it"),
        ("The staging server is restarted at night", "Every night the staging server restarts"),
        ("Translations are kept in the locale folder", "The locale folder holds the translations"),
        ("Close the connection when the request ends", "Connections must be closed at the end of a request"),
    ),
}
OTHER: dict[str, Pairs] = {
    "chosen with": (
        ("Use tabs in Python files", "Use spaces in Python files"),
        ("Enable the cache in production", "Disable the cache in production"),
        ("Enable the cache in production", "Enable the cache in staging"),
        ("Use npm to install packages", "Use pnpm to install packages"),
        ("Use redis 7 in the tests", "Use redis 6 in the tests"),
        ("Always squash commits before merging", "Never squash commits before merging"),
        ("Run the tests before the build", "Run the build before the tests"),
        ("The API returns dates in UTC", "The API returns dates in local time"),
        ("Log errors at level warning", "Log errors at level error"),
        ("Use GET for the search endpoint", "Use POST for the search endpoint"),
        ("Put unit tests in tests/unit", "Put e2e tests in tests/e2e"),
        ("The staging database may be reset", "The production database may be reset"),
        ("make test runs the unit tests", "make check runs the unit tests"),
        ("Use snake_case for column names", "Use camelCase for column names"),
        ("Tests pass on Linux but fail on macOS", "Tests pass on macOS but fail on Linux"),
        ("The client retries failed requests", "The server retries failed requests"),
        ("Increase the timeout when CI is slow", "Decrease the timeout when CI is slow"),
        ("Prefer composition over inheritance", "Prefer inheritance over composition"),
    ),
    "fresh": (
        ("Deploy on Mondays", "Deploy on Fridays"),
        ("Show errors to admins only", "Show errors to everyone"),
        ("Prices are stored in cents", "Prices are stored in euros"),
        ("Open the dialog on a single click", "A double click opens the dialog"),
        ("Ids start at zero", "Ids start at one"),
        ("The person likes long explanations", "Short explanations are what the person likes"),
        ("Sort the results ascending", "Results should be sorted in descending order"),
        ("Build with gcc on Linux", "On Linux the build uses clang"),
        ("Merge with a merge commit", "Merge by rebasing"),
        ("The frontend validates the form", "The form is validated by the backend"),
        ("Write the tests first", "Write the tests last"),
        ("Retry a failed upload", "Do not try a failed upload again"),
        ("Comments are written in English", "Comments are in French"),
        ("The job runs every hour", "The job runs every night"),
        ("Keep the old column until the next release", "Drop the old column in the next release"),
        ("Use the staging key for local runs", "Local runs use the production key"),
        ("Files are encoded in UTF-8", "Files are encoded in Latin-1"),
        ("Cache the responses of the search", "Never cache what the search responds"),
    ),
    "unseen": (
        ("Uploads are limited to 10 MB", "Downloads are limited to 10 MB"),
        ("Name branches after the ticket", "The branch name should be that of the author"),
        ("Invoices are rendered by the pdf service", "The pdf service stores invoices"),
        ("The linter complains about unused imports", "The linter ignores imports that are not used"),
        ("Put helper scripts in tools", "Helper scripts belong into the bin folder"),
        ("The user dislikes emojis in commit messages", "The user likes commit messages with emojis"),
        ("Admins log in through the gateway", "Through the gateway guests log in"),
        ("Update the changelog with every feature", "The changelog is updated with every release"),
        ("Run the formatter after editing", "Before you edit, run the formatter"),
        ("The staging server is restarted at night", "Every night the live server restarts"),
        ("Translations are kept in the locale folder", "Translations are kept in the database"),
        ("Open the connection when the request begins", "Connections are closed when the request begins"),
    ),
}
APART: Pairs = (
    ("Run the linter before each commit", "The API returns dates in UTC"),
    ("The tests need a running redis", "Prefer small pull requests"),
    ("Use snake_case for column names", "Read the file before you edit it"),
    ("Ask before adding a dependency", "Enable the cache in production"),
    ("Feature flags live in flags.yaml", "The user wants answers in German"),
    ("Mock the payment gateway in tests", "Releases are tagged on the main branch"),
)
SHORT, LONG = "Use the redis 7 container for the tests that need a queue", 27  # times SHORT: 1,600 characters
MEMORY = """
import asyncio, json, time
from daemon.learning.embed.minilm import MiniLM

def mb():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6

async def main():
    before, began = mb(), time.perf_counter()
    made = MiniLM()
    await made.embed(["a"])
    took, with_it = time.perf_counter() - began, mb()
    await made.close()
    after, began = mb(), time.perf_counter()
    await made.embed(["a"])
    again = time.perf_counter() - began
    print(json.dumps([before, with_it, after, took * 1000, again * 1000]))

asyncio.run(main())
"""


def run(*, quick: bool) -> Table:
    """Medians; what is counted, counted once."""
    runs = 1 if quick else 3
    table = Table(f"Embeddings ({runs} runs)", ("what", "value"))
    if lacking := minilm.missing():
        table.notes.append(f"left out: there is no {', '.join(lacking)} (make embed)")
        return table
    measured = [
        json.loads(subprocess.check_output([sys.executable, "-c", MEMORY], cwd=REPO)) for _ in range(runs)
    ]
    named = ("MB before", "MB with the model", "MB after it went", "ms first text", "ms first text again")
    for i, name in enumerate(named):
        add(table, name, median([m[i] for m in measured]))
    asyncio.run(_vectors(table, runs))
    return table


async def _vectors(table: Table, runs: int) -> None:
    made = minilm.MiniLM()
    await made.embed([SHORT])
    for name, text, times in (("58 characters", SHORT, 50), ("1,600 characters", f"{SHORT} " * LONG, 5)):
        took = []
        for _ in range(runs):
            began = time.perf_counter()
            await made.embed([text] * times)
            took.append(times / (time.perf_counter() - began))
        add(table, f"texts a second, {name}", median(took))
    for name, pairs in (
        *((f"alike, {n}", p) for n, p in ALIKE.items()),
        *((f"other, {n}", p) for n, p in OTHER.items()),
        ("apart", APART),
    ):
        texts = [text for pair in pairs for text in pair]
        rows = [v.row for v in await made.embed(texts)]
        cosines = [sum(map(mul, rows[i], rows[i + 1])) for i in range(0, len(rows), 2)]
        add(table, f"{name}: median cosine", median(cosines))
        add(table, f"{name}: at {THRESHOLD} or nearer, of {len(pairs)}", sum(c >= THRESHOLD for c in cosines))
    await made.close()


def add(table: Table, name: str, value: float) -> None:
    """A row."""
    table.rows.append((name, f"{value:,.2f}" if value < 10 and value % 1 else f"{value:,.0f}"))
    table.values[name] = {"value": value}

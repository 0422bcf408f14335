"""Things of one kind, of which a project mostly uses one: package managers, ways to indent, names, formats.

A small table, English, and closed on purpose: two names stand in one row only when wanting the one nearly
always means not wanting the other. A name is a pattern, so that "spaces around operators" is no indentation.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS: Final[dict[str, tuple[str, ...]]] = {
    "package managers": ("npm|npx", "yarn", "pnpm", "bun|bunx"),
    "Python package managers": ("pip", "poetry", "uv", "pipenv", "conda", "pdm"),
    "ways to indent": (
        "tabs?(?! (?:bar|order|key|panel))",
        "spaces(?! (?:around|between|before|after|in|at)\\b)",
    ),
    "kinds of quotes": ("single[- ]quot(?:es?|ed)", "double[- ]quot(?:es?|ed)"),
    "JavaScript test runners": ("jest", "vitest", "mocha", "ava", "jasmine"),
    "browser test tools": ("cypress", "playwright", "puppeteer", "selenium"),
    "Python test tools": ("pytest", "unittest", "nose2?"),
    "formatters": ("prettier", "biome", "dprint"),
    "Python formatters": ("black", "yapf", "autopep8", "ruff format"),
    "linters": ("eslint", "tslint", "oxlint", "standardjs"),
    "Python linters": ("flake8", "pylint", "ruff check"),
    "type checkers": ("mypy", "pyright", "pyre"),
    "languages": ("typescript", "javascript"),
    "kinds of exports": ("named exports?", "default exports?"),
    "kinds of imports": ("absolute imports?", "relative imports?"),
    "kinds of components": ("class components?", "(?:functional|function) components?"),
    "ways to style": ("tailwind(?:css)?", "styled[- ]components?", "css modules?", "sass|scss", "emotion"),
    "stores of state": ("redux", "zustand", "mobx", "jotai", "recoil"),
    "ways to ask over HTTP": ("axios", "fetch api|native fetch|fetch\\(\\)", "ky", "superagent"),
    "libraries for dates": ("moment(?:\\.?js)?", "day\\.?js", "date-fns", "luxon"),
    "bundlers": ("webpack", "vite", "rollup", "esbuild", "parcel"),
    "frameworks": ("react", "vue", "svelte", "angular", "solidjs"),
    "Python web frameworks": ("flask", "django", "fastapi"),
    "databases": ("postgres(?:ql)?", "mysql", "mariadb", "sqlite", "mongodb?"),
    "ways to map a database": ("prisma", "drizzle", "typeorm", "sequelize", "knex"),
    "kinds of API": ("rest(?:ful)? api|rest(?= endpoints?)", "graphql", "grpc", "trpc"),
    "ways to merge": ("rebas(?:e|ing)", "merge commits?", "squash(?:[- ]merge|ing)?"),
    "ways to write names": ("camel ?case", "snake[_ -]?case", "pascal ?case", "kebab[- ]?case"),
    "ways to wait": ("async/await|async await", "\\.then|promise chains?|then chains?", "callbacks?"),
    "ways to name a type": ("interfaces?", "type alias(?:es)?"),
    "ways to build paths": ("pathlib", "os\\.path"),
    "ways to log": (
        "print(?:\\(\\)| statements?)|console\\.log",
        "(?:the )?logger|logging module|loguru|structlog",
    ),
    "ways to format text": ("f-strings?", "str\\.format|\\.format\\(\\)", "%[- ]formatting"),
    "kinds of docstrings": ("google[- ]style", "numpy[- ]style", "sphinx[- ]style|restructuredtext"),
    "lengths of answers": (
        "concise(?:ly)?|brief(?:ly)?|terse(?:ly)?|short(?= (?:answers?|responses?|explanations?|replies))",
        "detailed|verbose(?:ly)?|long(?= (?:answers?|responses?|explanations?|replies))|in detail",
    ),
    "spellings": ("british (?:english|spelling)", "american (?:english|spelling)|us english"),
    "languages of text": ("in english", "in german|auf deutsch", "in french", "in spanish"),
    "line endings": ("crlf", "lf"),
    "kinds of case": ("upper ?case|all caps", "lower ?case"),
    "container tools": ("docker", "podman"),
    "tools for monorepos": ("turborepo", "nx", "lerna"),
    "ways to declare": ("var", "const"),
    "themes": ("dark (?:mode|theme)", "light (?:mode|theme)"),
}
_NAMES: Final = [(kind, name) for kind, names in KINDS.items() for name in names]
_ANY: Final = re.compile(
    "|".join(rf"(?<![\w-])(?P<n{i}>{name})(?![\w-])" for i, (_, name) in enumerate(_NAMES))
)


def named(text: str) -> Iterator[tuple[int, str, int]]:
    """Where something of the table is named in a text of small letters, its kind, and which one it is."""
    for found in _ANY.finditer(text):
        which = int(str(found.lastgroup)[1:])
        yield found.start(), _NAMES[which][0], which

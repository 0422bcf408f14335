"""What may stand before a command without changing what runs: ``FOO=1``, ``timeout 60``, ``uv run`` …"""

from __future__ import annotations

import re
from typing import Final

_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*\+?=")
_PREFIXES: Final = frozenset(
    (  # noqa: SIM905 -- a word list
        "sudo time nohup exec command env nice stdbuf xvfb-run npx bunx pnpx uvx cross-env builtin then "
        "do else { !"
    ).split()
)
_RUN_PREFIXES: Final = {
    **dict.fromkeys(
        ("uv", "poetry", "pipenv", "pdm", "hatch", "rye", "conda", "coverage"), frozenset({"run"})
    ),
    "pnpm": frozenset({"exec", "dlx"}),
    "yarn": frozenset({"exec", "dlx"}),
    "npm": frozenset({"exec", "x"}),
    "bundle": frozenset({"exec"}),
    "mise": frozenset({"exec", "x"}),
    "bun": frozenset({"x"}),
}
_CONTAINERS: Final = frozenset({"docker", "docker-compose", "podman"})
_PREFIX_VALUES: Final = frozenset(
    (  # noqa: SIM905 -- a word list
        "-n -k --with --extra --group --python "
        "-p --project --package --env-file --directory -C -e -s -u --name"
    ).split()
)


_SCRIPTS: Final = frozenset(
    ["manage.py", "artisan", "phpunit", "pest", "rspec", "rails", "rake", "prove", "minitest"]
)


def unwrap(words: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """The command without its wrapping (``FOO=1 timeout 60``), and whether something eats its exit code."""
    i, negated, end = 0, False, len(words)
    while i < end:
        word = words[i].rsplit("/", 1)[-1]
        if _ASSIGNMENT.match(words[i]):
            i += 1
        elif word in {"if", "while", "until", "elif", "!"}:
            i, negated = i + 1, True
        elif word in _CONTAINERS and (inside := _inside(words, i)):
            i = inside
        elif word == "timeout":
            i = _past_options(words, i + 1) + 1
        elif word == "command" and words[i + 1 : i + 2] and words[i + 1] in {"-v", "-V"}:
            return (), True  # only asks whether it exists
        elif word in _PREFIXES:
            i = _past_options(words, i + 1)
        elif i + 1 < end and words[i + 1] in _RUN_PREFIXES.get(word, ()):
            i = _past_options(words, i + 2)
        elif word.startswith(("python", "pypy")) or word in {"py", "php", "ruby", "perl"}:
            module = _module(words, i)
            if not module:
                break
            i = module
        elif word == "-m" and i and words[i - 2 : i] == ("coverage", "run"):
            i += 1
        else:
            break
    return words[i:], negated


def _inside(words: tuple[str, ...], i: int) -> int:
    """Where the command stands in ``docker compose exec -T web pytest`` or ``docker exec box pytest``."""
    verbs = {"exec", "run"} if words[i + 1 : i + 2] == ("compose",) or "-compose" in words[i] else {"exec"}
    for j in range(i + 1, min(i + 4, len(words))):
        if words[j] in verbs:
            return _past_options(words, j + 1) + 1
    return 0


def _past_options(words: tuple[str, ...], i: int) -> int:
    while i < len(words) and words[i].startswith("-") and words[i] != "-m":
        i += 2 if words[i] in _PREFIX_VALUES else 1
    return i


def _module(words: tuple[str, ...], i: int) -> int:
    """Where ``pytest`` stands in ``python -W error -m pytest``, ``artisan`` in ``php artisan test``."""
    for j in range(i + 1, min(i + 6, len(words))):
        if words[j] == "-m":
            return j + 1
        if words[j] == "-c":
            return 0
        if words[j].rsplit("/", 1)[-1] in _SCRIPTS:
            return j
    return 0

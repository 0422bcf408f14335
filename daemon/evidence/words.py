"""The lexicon: how texts of people and agents are cut into sentences and words, and what gives a reason.

Every rule that reads text reads it with these. Pure, linear in time, and bounded where a text has no bound.
"""

from __future__ import annotations

import re
from typing import Final

MAX_READ: Final = 4_000  # characters of the end of an answer
MAX_SENTENCE: Final = 400
LINE: Final = 160  # characters of a text that is shown in a row

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])[ \t]+|\n+")
_NEXT_SENTENCE: Final = re.compile(r"(?<=[.!?…])[ \t]+(?=[\"'(*_A-Z0-9`])")
_REQUEST_SENTENCE: Final = re.compile(
    r"(?<=[.!?])[ \t]+(?=[\"'(A-Z0-9`ÄÖÜ])|(?<=[.!?])[ \t]+(?=(?:then|also|please|and|don't|do not)\b)"
    r"|(?<=[a-zà-ÿ0-9)`'\"]{3}[.!?])(?<!\betc\.)(?<!\bincl\.)(?<!\bapprox\.)[ \t]+(?=[a-zà-ÿ])"
)
_WORD: Final = re.compile(r"[^\W_]{4,}")
_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_STOP: Final = frozenset(  # cut to five letters, as ``words`` has them
    (  # noqa: SIM905 -- a word list
        "actua after again also anyth being bitte could does doing done dont each every first from have "
        "here into inste just like make more need never next only other some sure than that their them "
        "then there these they thing this those time until using very want well what when where which "
        "while will with work would write your chang forge scrat leave mind drop skip ignor cance longe "
        "bothe about imple remov delet "
    ).split()
)
_REASON: Final = re.compile(
    r"\b(?:because|since|can(?:'t|not)|couldn't|could not|unable|no access|permission|credential\w*"
    r"|token|api key|password"
    r"|not (?:available|installed|needed|necessary|required|possible)|unavailable|network|offline"
    r"|sandbox|environment|as (?:you )?(?:requested|asked|instructed)"
    r"|you (?:asked|said|told)|per your|your (?:approval|decision|input|confirmation)|out of scope"
    r"|on purpose|deliberately"
    r"|approv(?:ed|al)|sign(?:ed)?[- ]?off|waiting (?:for|on)|logged in|signed in"
    r"|intentionally|no need|already|optional)\b",
    re.IGNORECASE,
)
_ABSENCE: Final = re.compile(
    r"\b(?:not (?:configured|a git)"
    r"|no (?:remote|network|access|git|tests?|test suite|readme|changelog|docs|build|linter)\b"
    r"|nothing to|isn't|is not|doesn't|does not|no changes?"
    r"|there (?:is|are) no|requires?|blocked|denied|fail(?:s|ed|ing)?|skipped"
    r"|authenticat\w+|permissions|up[- ]to[- ]date|unchanged|covered|bereits|schon|déjà|ya|já|già)\b",
    re.IGNORECASE,
)


def sentences(answer: str) -> list[str]:
    """The sentences at the end of an agent's answer, without code blocks and Markdown marks."""
    tail = answer[-MAX_READ:].replace("\u2019", "'")
    kept = [s for block in tail.split("```")[::2] for s in split_sentences(block)]
    return [s for raw in kept if (s := raw.strip(" \t*_#>-").strip()[:MAX_SENTENCE])]


def split_sentences(text: str) -> list[str]:
    """Cut after a full stop, a question or exclamation mark, and at line ends."""
    return _SENTENCE_END.split(text)


def split_line(line: str) -> list[str]:
    """Cut only before what looks like the start of a sentence, so that "e.g. this" stays whole.

    For rules that hang on one sentence: the last one of an answer, one line of a project's rules.
    """
    return _NEXT_SENTENCE.split(line)


def split_request(paragraph: str) -> list[str]:
    """As ``split_line``, and also before a small letter: people type requests that way, agents don't."""
    return _REQUEST_SENTENCE.split(paragraph)


def words(text: str, limit: int = 1_000) -> frozenset[str]:
    """The content words of a text, cut to five letters so that inflections meet."""
    text = _CAMEL.sub(" ", text[:limit])
    return frozenset([w[:5] for w in _WORD.findall(text.lower())]) - _STOP


def gives_reason(sentence: str) -> bool:
    """Whether a sentence says why something could not or need not be done."""
    return bool(_REASON.search(sentence))


def explains_absence(sentence: str) -> bool:
    """Whether a sentence that names a missing thing says why it is missing.

    Wider than ``gives_reason``: beside the thing's name "isn't", "fails" and "up to date" explain enough.
    """
    return gives_reason(sentence) or bool(_ABSENCE.search(sentence))


def last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """The last place in ``text`` where ``pattern`` matches."""
    found = None
    for found in pattern.finditer(text):  # noqa: B007 -- the last one counts
        pass
    return found


def shorten(text: str, limit: int = LINE) -> str:
    """One line of at most ``limit`` characters."""
    text = " ".join(text[: limit * 5].split())
    return text if len(text) <= limit else text[: limit - 1] + "…"

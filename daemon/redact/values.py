"""Finds secrets by the name that they stand under: in ``.env``, JSON, YAML, INI, XML, code, query strings,
flags and plain English (I46).

Name and notation decide how much a value has to look like a secret. The value of ``export X_KEY=…`` is always
one; that of ``key = …`` in code only if it looks random.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .names import SHORT_STEMS, STEMS, SURE, looks_random, placeholder, strength
from .tables import pattern
from .text import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .names import Strength
    from .text import Text

MAX_LOOK: Final = 128  # characters of a value that are looked at; a secret is then removed whole
MAX_ROW: Final = 400  # characters of a table's row
MAX_ROWS: Final = 50
NAME_COST: Final = 2  # see ``Text.affords``
VALUE_COST: Final = 10
PLACE_COST: Final = 8
MAX_NAME: Final = 64  # characters of a name on each side of the telling word
_CELL_ENDS: Final = frozenset('|,\t \n"')
_IN_CODE: Final = frozenset("[],;{}<>/\\|+&@#$%^~")
_TOLD: Final = pattern("values.told")
_BARE: Final = pattern("values.bare")
_CALL: Final = pattern("values.call")
_TYPE: Final = pattern("values.type")
_PATH: Final = pattern("values.path")
_TO_NAME: Final = pattern("values.to_name")
_WORD_QUOTED: Final = pattern("values.word_quoted")
_SEPARATOR: Final = pattern("values.separator")
_SET_PWD: Final = pattern("values.set_pwd")
_ARN: Final = pattern("values.arn")
_GONE: Final = pattern("values.gone")
_QUALIFIED: Final = pattern("values.qualified")
_JOINED: Final = pattern("values.joined")
_AFTER_FLAG: Final = pattern("values.after_flag")
_PHRASE: Final = pattern("values.phrase")
_FIELD: Final = pattern("values.field")
_DELIMITED: Final = pattern("values.delimited")
_NO_CELL: Final = pattern("values.no_cell")
_CODE: Final = pattern("values.code")
_LABEL: Final = pattern("values.label")
_SENTENCE: Final = pattern("values.sentence")
_FETCH: Final = pattern("values.fetch")
_RATE: Final = pattern("values.rate")
_TAG: Final = pattern("values.tag")
_ATTRIBUTE: Final = pattern("values.attribute")
_HEX: Final = pattern("values.hex")
_PASSWORD: Final = pattern("values.password")
_TELLING: Final = pattern("values.telling")
_PREFIX: Final = pattern("values.prefix")
_SETTER: Final = pattern("values.setter")
_NETRC: Final = pattern("values.netrc")
_KEYED: Final = pattern("values.keyed")
_SETS: Final = pattern("values.sets")
_ELEMENT: Final = pattern("values.element")


def _until(quote: str) -> re.Pattern[str]:
    """A pattern for all before the closing ``quote`` or the line's end. An escaped quote closes an escaped
    one.
    """
    if len(quote) == 1:
        return re.compile(rf"(?:[^{quote}\\\n]|\\[^\n])*+")
    line = "" if len(quote) == 3 and quote[0] == quote[1] else r"\n"
    return re.compile(rf"(?:(?!{re.escape(quote)})[^{line}\x00])*+")


_UNTIL: Final = {
    quote: _until(quote)
    for quote in ('"""', "'''", *("\\" * n + q for n in range(5) for q in ('"', "'", "`", '"""', "'''")))
}


def named(text: Text) -> Iterator[Span]:
    """The values of names that sound like a secret."""
    done = table = 0
    header, rows = -1, _Rows(text, 0, 0)
    for at in _hits(text):
        if at < done or not text.affords(at, NAME_COST):
            continue
        start, end = text.name_around(at, MAX_NAME)
        start = max(start, done)
        done = end
        found = _value(text, start, end)
        if found is not None:
            yield Span(*found, "named")
            done = max(done, found[1])
        elif text.text[end : end + 1] in _CELL_ENDS:
            line = text.text.rfind("\n", max(0, start - MAX_ROW), start) + 1
            in_row = line > 0 or start <= MAX_ROW
            if in_row and line != header and line >= table:
                header, rows = line, _Rows(text, line, end)
            if in_row and line == header:
                yield from rows.column(start, end)
                table = rows.end


def _hits(text: Text) -> list[int]:
    """Where telling words stand, first to last."""
    low, whole = text.low, text.text
    found = {at for stem in STEMS for at in text.places(stem)}
    for stem in SHORT_STEMS:
        size = len(stem)
        for at in text.places(stem):
            after, before = low[at + size : at + size + 1], low[at - 1 : at] if at else b""
            if not after.isalpha() and (not before.isalpha() or whole[at].isupper() or stem == b"pw"):
                found.add(at)
    return sorted(found)


class _Rows:
    """A row that may be a table's head, and the rows below it with as many cells: divided by ``|``, tabs or
    commas. They are divided once for all columns; ``end``: so far, no row is the head of another table.
    """

    def __init__(self, view: Text, first: int, end: int) -> None:
        self._view, self._first = view, first
        self._last = view.text.find("\n", end, end + MAX_ROW)
        head = view.text[first : self._last] if self._last >= 0 else ""
        self._separator = next((s for s in "|\t," if s in head), "")
        self._cells: list[list[tuple[int, str]]] | None = None
        self.end = 0

    def column(self, start: int, end: int) -> Iterator[Span]:
        """The values below the telling name ``text[start:end]``, if it is all that its cell holds."""
        text, separator = self._view.text, self._separator
        if not separator or end > self._last or strength(text[start:end]) in {"", "weak"}:
            return
        before = text[self._first : start].rstrip(' "').rpartition(separator)
        after = text[end : self._last].lstrip(' "')
        bounded = not before[2] and (not after or after.startswith(separator))
        if not bounded or text[self._last - 1] == separator == ",":
            return
        if self._cells is None:
            self._cells = list(self._divided())
        index = text.count(separator, self._first, start)
        for cells in self._cells if self._view.affords(start, len(self._cells) // 2) else ():
            at, value = cells[index]
            if len(value) >= 6 and " " not in value and SURE.search(value) and not _NO_CELL.search(value):
                yield Span(at, at + len(value), "column")

    def _divided(self) -> Iterator[list[tuple[int, str]]]:
        """The cells of each row below the head: where the value stands, and the value."""
        text, separator, last = self._view.text, self._separator, self._last
        columns = text.count(separator, self._first, last)
        for _ in range(MAX_ROWS):
            first, last = last + 1, text.find("\n", last + 1, last + 1 + MAX_ROW)
            row = text[first : last if last >= 0 else first + MAX_ROW]
            ruled = not row.strip("-+|: ")
            if (row.count(separator) != columns and not ruled) or not self._view.affords(first, 2 + columns):
                return
            self.end = first + len(row)
            if not ruled:
                cells = []
                for cell in row.split(separator):
                    value = cell.strip(' "')
                    cells.append((first + cell.find(value), value))
                    first += len(cell) + 1
                yield cells
            if last < 0:
                return


def _value(view: Text, start: int, end: int) -> tuple[int, int] | None:
    """Start and end of the secret under the name ``text[start:end]``, if there is one."""
    text = view.text
    if text[start - 1 : start] == "\\" and text[start] in "nrt":  # an escaped line end in JSON text
        start += 1
    name = text[start:end].strip("-.")
    level = strength(name)
    if name.lower() in {"key", "token"}:
        before = _QUALIFIED.search(text[max(0, start - 24) : start])
        if before and (qualified := strength(f"{before[1]}_{name}")) in {"strong", ""}:
            level = qualified
    elif name == "PWD" and _SET_PWD.match(text, end):
        level = "strong"
    elif name.lower() == "code" and text[start - 1 : start] in {"?", "&"}:
        level = "weak"  # of a login that was sent back: only what looks random
    if level and text[start - 1 : start] == ":" and _ARN.search(text, max(0, start - 120), start):
        return None
    if (
        not level
        or text.endswith("[redacted:", 0, start)
        or _GONE.match(text, end)
        or (name == "credentials" and _FETCH.match(text, end))
    ):
        return None
    if not view.affords(start, VALUE_COST):
        return None
    found = _SEPARATOR.match(text, end)
    if found is not None and (
        level != "weak" or looks_random(_run(_DELIMITED, text, found.end(), found.end() + MAX_LOOK))
    ):
        if not view.affords(start, PLACE_COST):
            return None
        span = _Place(text, start, name, level, found).secret()
        if span is not None:
            return span
    return _in_prose(text, start, end, name, level)


class _Place:
    """The text behind a telling name, and the name's place."""

    def __init__(self, text: str, start: int, name: str, level: Strength, found: re.Match[str]) -> None:
        self.text, self.name, self.level, self.found = text, name, level, found
        self.quote, self.at = found["quote"] or "", found.end()
        self.closed = bool(found["closed"].strip("?!"))
        self.flag = text.startswith("-", start)
        self.opened = text[start - 1 : start]
        line = text.rfind("\n", max(0, start - 100), start)
        before = text[max(line + 1, start - 100) : start].rpartition("\\n")[2]
        self.before = before
        self.own_line = (line >= 0 or start <= 100) and _PREFIX.fullmatch(before) is not None
        self.shouted = name.isupper()
        self.query = self.opened in {"?", "&", "#"} or (found["assign"] or "").strip(" \t").lower() == "%3d"
        if name.lower() == "pass" and "user" in text[max(0, start - 60) : start].lower():
            self.level = "strong"

    def secret(self) -> tuple[int, int] | None:
        """Start and end of the value if it is a secret."""
        found, text, at = self.found, self.text, self.at
        if found["xml"] is not None:
            if not (_ATTRIBUTE if self.closed else _TAG).search(self.before):
                return None
            return self._whole(_ELEMENT, "", strong=True)
        if found["call"] is not None or found["pair"] is not None:
            return self._beside()
        if self.quote:
            if found["space"] is not None and self.name.lower() == "pass":
                return None  # "pass `x`" tells what to hand over
            if self.opened == self.quote[:1] and not self.closed:
                return None  # input("Password: ") ends here
            return self._whole(_UNTIL[self.quote], "", strong=found["space"] is None or self.flag)
        if found["space"] is not None and (text[at : at + 1] in {"-", ""} or self.name.lower() == "pass"):
            return None
        if "phrase" in self.name.lower() and found["assign"]:
            phrase = _PHRASE.match(text, at)
            if phrase is not None:
                return phrase.span()
        if self.opened == ";" or self.before.rstrip().endswith(";"):
            span = self._whole(_FIELD, " ", strong=True)
            if span is not None and text[span[1] : span[1] + 1] in {";", '"', "'"}:
                return span
        strict = self._strict()
        ending = _BARE if strict and not self.query else _DELIMITED
        return self._whole(ending, ",;)}]" if strict else ".,;:", strong=strict)

    def _beside(self) -> tuple[int, int] | None:
        """The value in a pair ``name="X" value="Y"``, and in the arguments of a call."""
        if not (self.closed or self.opened == ">" or _KEYED.search(self.before)):
            return None
        sets = self.found["call"] is None or self._may_be_argument()
        return self._whole(_UNTIL[self.quote] if self.quote else _BARE, "", strong=sets)

    def _may_be_argument(self) -> bool:
        """Says whether the name and the value after it are arguments of a call that sets a value."""
        return _SETS.search(self.before) is not None

    def _strict(self) -> bool:
        """Says whether the notation is that of settings, where a value needs no quotes."""
        separator = (self.found["assign"] or "").strip(" \t")
        if self.found["space"] is not None:
            if self.flag and self.level == "strong":
                value = _run(_DELIMITED, self.text, self.at, self.at + MAX_LOOK)
                return _AFTER_FLAG.match(self.text, self.at + len(value)) is not None
            config = self.own_line and self.name.lower() in {"requirepass", "masterauth", "bindpw", "rootpw"}
            return (
                config
                or bool(self.shouted and _SETTER.search(self.before))
                or bool(_NETRC.search(self.before))
            )
        if self.query and separator.startswith("%"):
            return True
        if separator == "=":
            tight = self.found["assign"] == "="
            return (
                self.query
                or self.opened == "="
                or (tight and (self.shouted or self.own_line or self.flag))
                or self.before.rstrip().endswith(";")
            )
        if separator in {":-", ":="}:
            return self.shouted
        if separator == ":" and self._is_joined():
            return True
        return (
            separator == ":"
            and (self.own_line or self.opened in {'"', "'"})
            and (self.shouted or self._ends_line())
        )

    def _is_joined(self) -> bool:
        """Says whether the next field stands on the same line, as when lines were joined."""
        value = _run(_BARE, self.text, self.at, self.at + MAX_LOOK)
        return value[-1:] not in {",", ";"} and _JOINED.match(self.text, self.at + len(value)) is not None

    def _ends_line(self) -> bool:
        """Says whether the value ends the line."""
        value = _run(_BARE, self.text, self.at, self.at + MAX_LOOK)
        following = self.text[self.at + len(value) : self.at + len(value) + 1]
        if value[-1:] in {")", "}", "]", ",", ";"}:
            return False  # code
        return following in {"", "\n", "\r", '"', "'"} or self.text.startswith(
            (" #", "\\n"), self.at + len(value)
        )

    def _whole(self, ending: re.Pattern[str], trailing: str, *, strong: bool) -> tuple[int, int] | None:
        value = _run(ending, self.text, self.at, self.at + MAX_LOOK).rstrip(trailing)
        if not self._is_secret(value, settled=strong):
            return None
        return self.at, self.at + len(_run(ending, self.text, self.at, len(self.text)).rstrip(trailing))

    def _is_secret(self, value: str, *, settled: bool) -> bool:
        cookies = self.name.lower().endswith("cookie") and "=" in value[:-2]  # ``places`` looks into them
        if (
            placeholder(value)
            or cookies
            or value.lower() == self.name.lower()
            or _TYPE.fullmatch(value.rstrip("?!"))
            or _RATE.fullmatch(value)
        ):
            return False
        if value.isdigit():
            return _is_number(self.name, value)
        if _PATH.match(value) and not looks_random(value):
            return False
        if value[0] in "([{" or (value.isalpha() and _TELLING.search(value) and not value.islower()):
            return False
        if self.level == "weak" and self.query:
            return looks_random(value)
        if self.level == "weak":
            return _weak(value) and self.found["space"] is None and not _CODE.search(value)
        sure = len(value) >= 6 and " " not in value and SURE.search(value) is not None
        if self.quote or self.found["xml"] is not None:
            return self._quoted(value, settled=settled, sure=sure)
        return self._unquoted(value, settled=settled, sure=sure)

    def _quoted(self, value: str, *, settled: bool, sure: bool) -> bool:
        separator = (self.found["assign"] or "").strip()
        if self.level == "fair":
            set_up = self.found["assign"] == "=" or self.before.rstrip(" ('\"").endswith("define")
            return sure or (settled and self.shouted and set_up)
        if self.found["call"] is not None and not settled:
            return sure
        if self.name.lower() == "pw":
            return sure and not value.islower()
        if " " in value:
            told = self.flag or separator in {"=", ":="} or "phrase" in self.name.lower()
            return (settled or told) and not _LABEL.search(value) and (told or not _SENTENCE.search(value))
        return "passw" not in value.lower() and len(value) >= (3 if settled else 4)

    def _unquoted(self, value: str, *, settled: bool, sure: bool) -> bool:
        separator = self.found["assign"] or ""
        following = self.text[self.at + len(value) : self.at + len(value) + 1]
        if (
            _CALL.match(value)
            or (_CODE.search(value) and not (settled and "(" not in value and sure))
            or following in {"(", "[", "{", "<"}
        ):
            return False
        if settled:
            plain = value.isalpha() and value.islower() and not _PASSWORD.search(self.name)
            return self.shouted or sure or (self.level == "strong" and not plain)
        if self.level == "fair":
            if separator in {":", "::"}:
                return looks_random(value)
            return sure and (looks_random(value) or self.found["space"] is None)
        return sure or (
            len(value) >= 6 and not value.replace("-", "").isidentifier() and self.found["space"] is None
        )


def _weak(value: str) -> bool:
    """Says whether even the value of a ``key`` that may find something is a secret: no hash, no word, no
    path.
    """
    return looks_random(value) and not _HEX.search(value)


def _in_prose(text: str, start: int, end: int, name: str, level: Strength) -> tuple[int, int] | None:
    """``the password for staging is X``, or ``X is the password``."""
    if level == "weak" or name.lower().endswith(("cookie", "pass")) or text[end : end + 1] in _IN_CODE:
        return None
    found = _TOLD.match(text, end)
    if found is not None:
        quoted = bool(found["quote"])
        value = _run(_WORD_QUOTED if quoted else _BARE, text, found.end(), found.end() + MAX_LOOK).rstrip(
            ".,;:)!?*"
        )
        if _told(value, name, level, quoted=quoted):
            return found.end(), found.end() + len(value)
    before = text[max(0, start - 120) : start]
    word = _word_before(before)
    if word is not None and _told(before[word[0] : word[1]], name, level, quoted=False):
        return start - len(before) + word[0], start - len(before) + word[1]
    return None


def _word_before(before: str) -> tuple[int, int] | None:
    """The place of the X of ``X is the`` and ``X (the wifi`` before a name."""
    cut = max(before.rfind(verb) for verb in (" is ", " as ", " was ", " ("))
    if cut < 0 or _TO_NAME.fullmatch(before, cut + 1) is None:
        return None
    end = len(before[:cut].rstrip("\"'`"))
    return max(before.rfind(border, 0, end) for border in " \n\t\"'`(") + 1, end


def _told(value: str, name: str, level: Strength, *, quoted: bool) -> bool:
    """Says whether a word in plain English is a secret."""
    if (
        placeholder(value)
        or _TYPE.fullmatch(value)
        or _CALL.match(value)
        or _PATH.match(value)
        or len(value) < 4
        or value[0] in "([{"
    ):
        return False
    if value.isdigit():
        return _is_number(name, value)
    if value[0].isdigit() and value.partition("/")[2].isalpha():
        return False  # so many a minute
    sure = len(value) >= 5 and SURE.search(value) is not None
    if level == "strong":
        return sure or (quoted and " " not in value) or value.count("-") >= 3
    return sure and len(value) >= 8


def _is_number(name: str, value: str) -> bool:
    """``MAX_RETRIES=4096`` counts something; ``password: 123456`` and ``pin: 4821`` don't."""
    if name.lower().endswith(("password", "passwd", "passphrase", "pwd", "passcode", "pass")):
        return len(value) >= 3
    return len(value) >= 12 or (len(value) >= 4 and name.lower().endswith(("pin", "otp")))


def _run(pattern: re.Pattern[str], text: str, start: int, end: int) -> str:
    found = pattern.match(text, start, end)
    return found[0] if found else ""

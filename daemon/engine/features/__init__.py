"""Features: what the engine does besides judging turns. Each hangs on the seam in ``feature``, none on
another.
"""

"""Model providers behind the seam of ``core.llm``: each takes a ``Prompt`` and gives a ``Reply``."""

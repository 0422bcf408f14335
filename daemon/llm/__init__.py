"""Model providers: each takes a ``Prompt`` and gives a ``Reply`` (``core.llm``, ``core.ports.Provider``)."""

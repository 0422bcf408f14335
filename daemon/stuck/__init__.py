"""The stuck pipeline: signals of a loop, and what to think of a silent session. Pure; the engine drives it."""

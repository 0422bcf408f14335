"""The judge pipeline: case, flow, parse, decide. Pure; the engine drives it (design/judge.md)."""

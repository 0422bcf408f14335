"""After a compaction: github, case, flow, parse, decide. Pure; the engine drives it (DESIGN §3)."""

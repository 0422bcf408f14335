"""Hosts as tests see them: simulated in front of the real engine, or raw on the real socket."""

"""``make demo``: a recorded session, judged by a real daemon. Needs the run-time packages only."""

"""``make demo``: a recorded session judged by a real daemon. ``make`` needs only the run-time packages for it."""

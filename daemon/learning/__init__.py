"""Learning: rules, points and lessons, each kind in a package of its own."""

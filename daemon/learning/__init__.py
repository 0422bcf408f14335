"""Learning from sessions and from people: rules, points, lessons. One package for each kind."""

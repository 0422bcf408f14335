"""What is learned from sessions and from people: rules, points, lessons. Pure, one package for each kind."""

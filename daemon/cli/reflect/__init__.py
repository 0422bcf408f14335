"""``reflectd reflect``: what a person keeps correcting, and the rules that they make of it."""

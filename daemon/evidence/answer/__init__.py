"""How the agent's final text ends, what it claims and what it offers."""

"""What the person and the project's rules asked for."""

"""What is learned from sessions: rules, points and lessons."""

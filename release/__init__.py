"""What is done before a version is published."""

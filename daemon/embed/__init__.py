"""Models for embeddings: one on this machine, or any server with OpenAI's API for them."""

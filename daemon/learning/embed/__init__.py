"""Vectors of texts: the model that makes them, on this machine or on any server with OpenAI's API."""

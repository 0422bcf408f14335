"""The socket API (design/protocol.md): bind, parse, serialise. Verbs live in the engine."""

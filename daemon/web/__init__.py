"""The dashboard: pages of the running daemon in a browser (design/dashboard.md)."""

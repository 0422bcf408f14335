"""What features show on pages of the dashboard: data only, never markup (design/dashboard.md)."""

"""``reflectd backtest``."""

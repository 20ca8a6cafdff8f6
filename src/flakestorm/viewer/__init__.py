"""The local viewer: saved reports, the runs behind them and what crossed their boundary, in a browser."""

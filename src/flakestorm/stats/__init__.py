"""Rates with the evidence behind them. Pure functions; no data, no number."""

"""Configuration: `flakestorm.yaml` as data."""

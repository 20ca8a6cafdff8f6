"""Mutations: golden prompts and requests, transformed on purpose, without a model and the same for the same seed."""

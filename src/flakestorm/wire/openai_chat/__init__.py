"""OpenAI Chat Completions, and what speaks like it."""

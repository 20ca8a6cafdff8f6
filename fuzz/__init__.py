"""Coverage-guided fuzzing of what reads input from strangers: `python -m fuzz TARGET`, see README.md."""

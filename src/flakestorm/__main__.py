"""`python -m flakestorm` is the `flakestorm` command."""

from flakestorm.cli.main import main

if __name__ == "__main__":
    main()

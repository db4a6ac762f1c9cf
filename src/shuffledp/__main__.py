"""``python -m shuffledp`` is the ``shuffledp`` command."""

from shuffledp.cli.main import main

if __name__ == "__main__":
    main()

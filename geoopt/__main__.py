"""``python -m geoopt`` is ``geoopt``."""

from .cli import main

main()

# PYTHON_ARGCOMPLETE_OK
"""``python -m privatize``."""

from privatize.cli import main

raise SystemExit(main())

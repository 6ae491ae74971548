# PYTHON_ARGCOMPLETE_OK
"""``python -m privatize``."""

from privatize.cli.parser import main

raise SystemExit(main())

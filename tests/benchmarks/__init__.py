"""Benchmarks, as one command: `python -m tests.benchmarks --help`. Not part of the test command.

Every module but `learners` has `run(quick)`, which returns a list of :class:`~tests.benchmarks.measuring.Result`.
"""

"""Benchmarks, as one command: `python -m tests.benchmarks --help`. Not part of the test command.

Most modules have `run(quick)`, which returns a list of results; `learners` is a command of its own.
"""

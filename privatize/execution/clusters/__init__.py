"""Processes that are not ours: executors, anything with `map`, Dask, Ray."""

"""Where pairs are evaluated: inline, processes, executors, Dask, Ray."""

"""Other people's processes: executors, anything with `map`, Dask, Ray."""

"""Turn a job into bytes and back, and check that it is the same in both processes."""

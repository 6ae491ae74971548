"""The health checks of a calibration: what is evaluated again, and must be the same."""

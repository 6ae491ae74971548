"""Private functions: settings, binding, calibration, and the pipeline that holds private data."""

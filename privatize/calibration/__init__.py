"""The sensitivity sampler: neighbours are drawn, evaluated and measured."""

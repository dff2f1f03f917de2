"""Benchmarks: geoopt beside its peers, on any mesh. ``python -m benchmarks --help`` lists them."""

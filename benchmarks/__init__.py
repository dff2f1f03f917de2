"""Benchmarks: geoopt beside its peers, on any mesh."""

"""The array API standard's own tests, run on programs compiled by geoopt: see `module` and `scope`."""

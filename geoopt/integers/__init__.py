"""Arrays of integers, what every stage is written with: ids, lists cut into segments, patterns of matrices, hashes."""

"""Arrays of integers, what every stage is written with: ids, lists cut into segments and read by runs or cursors,
patterns of matrices, hashes; and how work on long arrays is divided among cores."""

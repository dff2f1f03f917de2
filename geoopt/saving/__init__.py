"""Programs as files: `writing` makes an archive of a program, `reading` a program's parts of an archive.

==============  ================================================================================
`archive`       a file: a JSON manifest, and arrays that are mapped into memory, not read
`records`       records as plain data, and back, held to their annotations
`templates`     templates and kernels as plain data
`parts`         results and signatures as plain data
`writing`       a program as an archive
`reading`       an archive as what machines are made of
`entries`       what kernels address, all of it
`..._bounds`    that a schedule, or a grid, addresses nothing outside of its buffers
==============  ================================================================================

Nothing in a file is run: text is printed of it again, for the processor at hand.
"""

"""What others do: the same work on the same data, one file per peer.

Each module has ``cotan(V, F)``, which prepares what depends on the structure alone and returns a function of V
that gives (L, M).
"""

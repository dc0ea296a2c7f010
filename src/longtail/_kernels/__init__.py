"""The compiled loops: the only package that imports numba; it imports nothing of ours.

Every kernel is serial, pure, releases the interpreter lock and takes at most eight arguments, named
tuples of plain arrays (`types`): inputs first, outputs last, allocated by the caller; the few that
make an array of their own say so (`allocating_kernel`). Which rows a kernel works on is the
caller's business. With ``NUMBA_DISABLE_JIT=1`` all of them run in Python. What is compiled is kept
on the disk (`cache`).

================ ================================================================
`types`          the named tuples
`elementary`     exponential and logarithm
`sorting`        sorting, binary search, counting sort by class
`statistics`     sums of the documents of each class
`weighting`      document vectors; query pruning
`features`       the six features of a (document, class) pair
`paper`          the ten features of Table 1 of the paper
`scoring`        the linear score of pairs
`quantization`   from a linear scorer to the inverted index
`search`         the classes that may be among the highest, from the index
`ranking`        top-k
`sampling`       random draws
`listwise`       softmax loss of lists; term weights
`pairwise`       squared hinge loss of pairs
`linear_algebra` small systems of equations
`residuals`      logistic regression of each class
`embeddings`     unit vectors in fixed point: sums, products, signs that differ
`hierarchy`      topological order; sums over ancestors
================ ================================================================
"""

"""A structure-aware fuzzer of model files: right checksums around wrong arrays and parameters.

=========== ======================================================================
`mutations` what is done to arrays and parameters
`cases`     from a number or a name to a mutated file; what is then called on it
`worker`    one process that runs cases with bounds checks and bounded memory
`driver`    starts workers, goes on after a crash, keeps what was found
=========== ======================================================================

``python -m tests.fuzz --cases 1000000`` (``make fuzz``) goes on where the last run stopped.
"""

"""Numbers that kernels share with the schema of model files, which is read without a compiler."""

BYTE_LEVELS = 127  # the products of four bytes with their factors then fit 16 bits
WORD_LEVELS = 65535  # of postings
N_SCORE_FEATURES = 6
N_PAPER_FEATURES = 10
N_BENDS = 3  # sizes of a class at which the slope of a weight changes

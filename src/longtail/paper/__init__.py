"""The paper in one place: Joshi, Amini, Partalas, Iutzeler and Maximov, NIPS 2017.

"Aggressive Sampling for Multi-class to Binary Reduction with Applications to Text Classification".
``docs/paper-to-code.md`` has a row for each of its algorithms, equations, tables and theorems.

================= ==============================================================
`sampling`        Algorithm 1, the draws: π, κ, S_π and the adversaries
`features`        Table 1, the ten features φ(x^y) of a (document, class) pair
`pairwise`        Eq. 4, the pairs of T_κ(S_π), and the linear SVM on them
`double_sampling` Algorithm 1 as a fit, Algorithm 2 as a ranking
`score_parts`     the score of a pair, feature by feature and term by term
`estimator`       `DoubleSamplingClassifier`, all of it as an estimator
`measures`        Eq. 1, 3, 6 and 7; both readings of MaF1
`theory`          Eq. 4 in full, Definition 1, Theorems 1 and 2, Figures 1 and 2
================= ==============================================================
"""

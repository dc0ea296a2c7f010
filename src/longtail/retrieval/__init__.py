"""Retrieval: quantized inverted index, query pruning, exact top-k search."""

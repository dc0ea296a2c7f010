"""The compiled loops: the only room that imports numba, and it imports nothing of ours.

Every kernel is serial, pure, releases the interpreter lock and works on plain arrays, inputs first
and outputs last, allocated by the caller. Which rows a kernel works on is the caller's business.
"""

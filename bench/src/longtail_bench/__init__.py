"""Benchmarks of longtail beside other systems; adds the command `longtail bench`."""

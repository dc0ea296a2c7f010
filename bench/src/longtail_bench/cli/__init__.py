"""The command `longtail bench`."""

"""The API, by what it is about: a router in each module."""

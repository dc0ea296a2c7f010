"""A public path to the features of the paper's Table 1, which are in `longtail.paper`."""

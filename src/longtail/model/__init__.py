"""The fitted model, and how it changes.

What it is:

`statistics`   the sum of the documents of each class; exact
`corpus`       document frequencies, idf, lengths: what all classes share
`weighting`    what a term of a document counts
`features`     the six features of a (document, class) pair
`scorer`       statistics and feature weights collapsed into one weight for each (class, term)
`names`        what a class is known by beside its documents
`embeddings`   vectors of documents, and their exact sums by class
`meaning`      the part of a score that comes from them
`class_tables` what base and overlay hold of each class, and what ranks it
`state`        everything that is fitted, in one frozen object
`explanation`  a score, term by term

How it changes:

`edits`        one frozen object for each kind of change, as a caller says it
`entry`        a change as numbers: what the log keeps of it, and all that a model needs
`overlay`      the classes that changes concern, beside a base that stays as it is
`parents`      the hierarchy of today, of that of the base and of what changes say
"""

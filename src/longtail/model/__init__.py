"""What a fitted model is, and how it changes.

`entry`    a change as numbers: what the log keeps of it, and all that a model needs
`overlay`  the classes that changes concern, beside a base that stays as it is
`edits`    one frozen object for each kind of change, as a caller says it
"""

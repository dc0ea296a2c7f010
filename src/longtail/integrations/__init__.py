"""Other people's frameworks: each module imports its own, and nothing else does.

`mlflow`   a model file as an MLflow ``pyfunc``
`mcp`      a model as tools of the Model Context Protocol
"""

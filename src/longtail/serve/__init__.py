"""The service: `longtail serve MODEL`, an API and a page over a model that people teach.

Data flows one way: bytes -> guard (who, how much, how long) -> route (a checked request) -> batcher
or teacher (the model) -> plain JSON.

`settings`       what a service is told: addresses, tokens, limits
`protocol`       HTTP connections that end when their client is slow
`guard`          host, token, size and time of every request; headers of every answer
`access`         tokens and their scopes
`audit`          who tried to change what
`problems`       errors as RFC 9457 has them
`schemas`        what requests and answers hold
`context`        what routes share; changes with their record and refusals
`document_texts` documents of requests as texts
`served_model`   the current model, changes to it, changes by other processes
`batching`       requests that arrive together are one call
`workers`        threads for slow reads
`predictions`    what a model says, as plain JSON
`explanations`   why a text gets a class, beside the runner-up
`class_details`  size, terms and neighbours of a class
`highlights`     where the terms of an explanation are in a text; new words
`quality`        what held-out documents showed when the model was fitted
`counters`       counters for Prometheus
`monitoring`     what was asked over time
`routes`         the API; also as Annif and Label Studio expect it
`page`           HTML, CSS and JavaScript
`application`, `server`  all of it put together, and run
"""

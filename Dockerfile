# A model as a service: docker build -t longtail . ; docs/how-to/containers.md says how to run it.
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
RUN python3 -m venv /opt/longtail
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN /opt/longtail/bin/pip install --no-cache-dir -c constraints.txt '.[cli,data,serve]'
# Kernels are compiled here, once, for any processor of the same architecture.
ENV NUMBA_CPU_NAME=generic
RUN /opt/longtail/bin/longtail warmup --quiet && chmod -R a+rX /opt/longtail

FROM ${BASE}
RUN useradd --uid 10001 --no-create-home --home-dir /tmp longtail \
    && install -d -o longtail -g longtail -m 700 /models
COPY --from=build /opt/longtail /opt/longtail
ENV PATH=/opt/longtail/bin:$PATH HOME=/tmp NUMBA_CPU_NAME=generic PYTHONDONTWRITEBYTECODE=1
USER 10001
VOLUME /models
EXPOSE 8080
HEALTHCHECK --start-period=30s CMD ["python3", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/health/ready', timeout=3)"]
ENTRYPOINT ["longtail"]
CMD ["serve", "/models/model.longtail", "--host", "0.0.0.0", "--tokens", "/run/secrets/tokens"]

# The server and its page in a container without a GPU, with the trained models. docs/server.md says how to use it.
FROM python:3.11-slim AS build
# The address of an index with PyTorch's builds for CPUs, which are a tenth of the size of the others.
ARG TORCH_INDEX=""
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . ./trained_models \
    && python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --constraint constraints.txt ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} \
        "elmo-tasks[server] @ file://$(ls /wheels/elmo_tasks-*.whl)" /wheels/elmo_tasks_models-*.whl

FROM python:3.11-slim
RUN useradd --create-home --uid 1000 elmo && mkdir /runs
COPY --from=build /venv /venv
ENV PATH="/venv/bin:$PATH" ELMO_TASKS_CACHE=/home/elmo/cache
USER 1000
# Runs, archives or both can be mounted here. Without them, the trained models are served.
VOLUME /runs
EXPOSE 8000
HEALTHCHECK --start-period=2m \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=5)"]
CMD ["sh", "-c", "set -- /runs/*; test -e \"$1\" || shift; exec elmo-tasks serve --host 0.0.0.0 --port 8000 \"$@\""]

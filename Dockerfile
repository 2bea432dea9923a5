# Polyloom with all that its demo needs, for any user:
#     docker build -t polyloom .
#     docker run --rm --user 12345 --read-only --tmpfs /tmp polyloom
#     docker run --rm --user "$(id -u)" -v "$PWD:/work" -w /work polyloom polyloom run program.c --check
# Nothing is written but below /tmp, where caches go that a user without a home cannot have elsewhere.
FROM python:3.11-slim-bookworm
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc libc6-dev \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/polyloom
COPY requirements/run.txt requirements/
RUN pip install --no-cache-dir -r requirements/run.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip install --no-cache-dir --no-deps .
COPY examples examples
CMD ["sh", "examples/demo.sh"]

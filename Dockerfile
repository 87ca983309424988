# Both programs in one image: `docker run muster` is the orchestrator, `docker run --entrypoint worker muster` a worker.

FROM golang:1.26-bookworm AS build
ARG GOPROXY
ARG GOFLAGS
WORKDIR /src
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /out/ ./cmd/orchestrator ./cmd/worker

FROM debian:bookworm-slim
# git carries the files of a job; ps and certificates are for the commands that agents run. A base that has them needs
# no package archive.
RUN set -eu; \
    if ! command -v git || ! command -v ps || ! test -e /etc/ssl/certs/ca-certificates.crt; then \
        apt-get update; \
        apt-get install -y --no-install-recommends ca-certificates git procps; \
        rm -rf /var/lib/apt/lists/*; \
    fi; \
    useradd --create-home --uid 10001 --shell /bin/sh muster
COPY --from=build /out/orchestrator /out/worker /usr/local/bin/
USER muster
WORKDIR /home/muster
ENTRYPOINT ["orchestrator"]
CMD ["--help"]

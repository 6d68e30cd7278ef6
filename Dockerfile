# idproxy as a static program in an image without a shell, run by an unprivileged user.
#
#   docker build --build-arg VERSION="$(git describe --tags --always)" --build-arg COMMIT="$(git rev-parse HEAD)" \
#     --build-arg DATE="$(git show -s --format=%cI)" --tag idproxy .

FROM docker.io/library/golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# What idproxy --version says: git's history is not copied here, so that Go does not know.
ARG VERSION
ARG COMMIT
ARG DATE
RUN CGO_ENABLED=0 go build -trimpath -o /out/idproxy \
      -ldflags="-s -w -X idproxy/cmd/idproxy/app.version=$VERSION -X idproxy/cmd/idproxy/app.commit=$COMMIT -X idproxy/cmd/idproxy/app.date=$DATE" \
      ./cmd/idproxy \
 && mkdir -p /out/lib

FROM gcr.io/distroless/static-debian12:nonroot
ARG VERSION
ARG COMMIT
ARG DATE
LABEL org.opencontainers.image.title="idproxy" \
      org.opencontainers.image.description="Ids for the INSERTs of MySQL clients, unique across all shards" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$COMMIT" \
      org.opencontainers.image.created="$DATE"
COPY --from=build /out/idproxy /usr/local/bin/idproxy
# File stores lie in folders below this one. A new volume takes over the folder's owner.
COPY --from=build --chown=nonroot:nonroot /out/lib /var/lib/idproxy
VOLUME /var/lib/idproxy
WORKDIR /var/lib/idproxy
USER nonroot:nonroot
# A port for each listener, as deploy/compose/idproxy/idproxy.yaml has them.
EXPOSE 3307 3308
ENTRYPOINT ["/usr/local/bin/idproxy"]
CMD ["serve", "--config", "/etc/idproxy/idproxy.yaml"]

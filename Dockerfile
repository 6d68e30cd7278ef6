# idproxy as a static program in an image without a shell, run by an unprivileged user.

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /out/idproxy ./cmd/idproxy \
 && mkdir -p /out/lib

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/idproxy /usr/local/bin/idproxy
# Where file stores live. A new volume takes over the folder's owner.
COPY --from=build --chown=nonroot:nonroot /out/lib /var/lib/idproxy
VOLUME /var/lib/idproxy
WORKDIR /var/lib/idproxy
USER nonroot:nonroot
EXPOSE 3307
ENTRYPOINT ["/usr/local/bin/idproxy"]
CMD ["serve", "--config", "/etc/idproxy/idproxy.yaml"]

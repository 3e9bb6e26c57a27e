# One image for all processes of the service, built from its package. They write only to /tmp and, without PostgreSQL, to /data:
#   docker build --tag execution-service .
#   docker run --init --read-only --tmpfs /tmp:exec --stop-timeout 30 -v execution-service:/data -v ./shop:/app/project:ro \
#     -p 127.0.0.1:3000-3002:3000-3002 execution-service
# With a browser: docker build --target browser --tag execution-service:browser .
# docs/operating.md has the details.

# Builds the package, which is the same on every platform.
FROM --platform=$BUILDPLATFORM node:24-slim AS package
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY . .
# The image installs packages for its own platform.
RUN node src/tools/generate/service-package.ts && rm -rf dist/execution-service/node_modules

FROM node:24-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The base image has Node; the one from npm is for machines with another version.
RUN npm ci --omit=dev && rm -rf node_modules/node-linux-* node_modules/.bin/node

FROM node:24-slim AS service
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY --from=package /build/dist/execution-service ./
# A project is mounted below /app, so that its workflows can import the service's packages.
RUN chmod +x src/commands/launcher.js && ln -s /app/src/commands/launcher.js /usr/local/bin/execution-service \
  && mkdir -p project/workflows && install --directory --owner=1000 --group=1000 /data
ENV NODE_ENV=production NODE_COMPILE_CACHE=/tmp/node-compile-cache HOST=0.0.0.0 DATA_DIR=/data WORKFLOWS_DIR=/app/project/workflows XDG_CACHE_HOME=/opt/cache
# By its number, so that Kubernetes knows that it is not root. The base image calls it "node".
USER 1000:1000
EXPOSE 3000 3001 3002 3003
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=60s --start-interval=1s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.MANAGEMENT_PORT || 3003}/readyz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["execution-service"]
CMD ["start"]

# The tag with a browser: Chromium from npm on x64, which the service unpacks to /tmp, and Debian's on arm64.
FROM service AS browser
ARG TARGETARCH
USER root
RUN if [ "$TARGETARCH" = arm64 ]; then \
    apt-get update && apt-get install --yes --no-install-recommends chromium fonts-open-sans && rm -rf /var/lib/apt/lists/*; \
  else \
    npm install --ignore-scripts --no-audit --cache /tmp/npm --prefix /opt/cache/execution-service/browser \
      "@sparticuz/chromium@$(node -p "require('/app/package.json').peerDependencies['@sparticuz/chromium']")" && rm -rf /tmp/npm; \
  fi
USER 1000:1000

# The last stage is the one that is built by default.
FROM service

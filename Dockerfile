# One image for all processes of the service. They write only to /tmp and, without PostgreSQL, to /data:
#   docker run --init --read-only --tmpfs /tmp:exec --stop-timeout 30 -v execution-service:/data -v ./workflows:/app/workflows:ro \
#     -p 127.0.0.1:3000-3002:3000-3002 IMAGE
# docs/operating.md has the details.

FROM node:24-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The base image has Node; the one from npm is for machines with another version.
RUN npm ci --omit=dev && rm -rf node_modules/node-linux-* node_modules/.bin/node
RUN npm install --ignore-scripts --prefix /opt/cache/execution-service/browser \
  "@sparticuz/chromium@$(node -p "require('./package.json').devDependencies['@sparticuz/chromium']")"

# Renders the reference of the docs, which needs development dependencies.
FROM node:24-slim AS reference
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY src src
COPY generated generated
COPY docs/samples docs/samples
RUN node src/surfaces/docs/reference.ts

FROM node:24-slim
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY --from=packages /opt/cache /opt/cache
COPY package.json README.md LICENSE ./
COPY src src
COPY generated generated
COPY docs/*.md docs/
COPY docs/guides docs/guides
COPY docs/samples docs/samples
COPY --from=reference /app/docs/reference.json.gz docs/
# Below /app, so that workflows can import the service's packages.
RUN mkdir workflows && install --directory --owner=node --group=node /data
ENV NODE_ENV=production NODE_COMPILE_CACHE=/tmp/node-compile-cache HOST=0.0.0.0 DATA_DIR=/data WORKFLOWS_DIR=/app/workflows XDG_CACHE_HOME=/opt/cache
USER node
EXPOSE 3000 3001 3002 3003
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=60s --start-interval=1s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.MANAGEMENT_PORT || 3003}/readyz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "src/main.ts"]
CMD ["start"]

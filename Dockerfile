# One image for all processes of the service. They write only to /tmp and, without PostgreSQL, to /data:
#   docker run --init --read-only --tmpfs /tmp:exec --stop-timeout 30 -v execution-service:/data -v ./workflows:/app/workflows:ro \
#     -p 127.0.0.1:3000-3002:3000-3002 IMAGE
# docs/operating.md has the details.

FROM node:24-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The base image has Node; the one from npm is for machines with another version.
RUN npm ci --omit=dev && rm -rf node_modules/node-linux-* node_modules/.bin/node

FROM node:24-slim
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY package.json README.md LICENSE ./
COPY src src
COPY generated generated
COPY docs/*.md docs/
COPY docs/guides docs/guides
COPY docs/samples docs/samples
# Below /app, so that workflows can import the service's packages.
RUN mkdir workflows && install --directory --owner=node --group=node /data
ENV NODE_ENV=production NODE_COMPILE_CACHE=/tmp/node-compile-cache HOST=0.0.0.0 DATA_DIR=/data WORKFLOWS_DIR=/app/workflows
USER node
EXPOSE 3000 3001 3002 3003
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=60s --start-interval=1s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.MANAGEMENT_PORT || 3003}/readyz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "src/main.ts"]
CMD ["start"]

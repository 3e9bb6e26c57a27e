{{- define "labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "secretName" -}}
{{- if .Values.secretName }}{{ .Values.secretName }}{{ else }}{{ .Release.Name }}-secret{{ end }}
{{- end }}

{{- /* Settings that the Secret may have besides DATABASE_URL and ENCRYPTION_KEY, and the headers of OpenTelemetry's exporter. */}}
{{- define "secretSettings" -}}
ARTIFACTS_ACCESS_KEY_ID ARTIFACTS_SECRET_ACCESS_KEY BROWSER_CDP_URL ENCRYPTION_KEY_PREVIOUS OIDC_CLIENT_SECRET
OTEL_EXPORTER_OTLP_HEADERS SMTP_URL VAULT_TOKEN
{{- end }}

{{- /* The names of the variables in extraEnv, as JSON. */}}
{{- define "extraNames" -}}
{{- $names := list }}
{{- range .Values.extraEnv }}{{ $names = append $names .name }}{{ end }}
{{- toJson $names }}
{{- end }}

{{- /* The environment of every process, in which no variable stands twice. */}}
{{- define "environment" -}}
{{- $extra := include "extraNames" . | fromJsonArray }}
{{- range list "DATABASE_URL" "ENCRYPTION_KEY" }}
{{- if not (has . $extra) }}
- name: {{ . }}
  valueFrom: { secretKeyRef: { name: {{ include "secretName" $ }}, key: {{ . }} } }
{{- end }}
{{- end }}
{{- range splitList " " (include "secretSettings" . | replace "\n" " ") }}
{{- if not (has . $extra) }}
- name: {{ . }}
  valueFrom: { secretKeyRef: { name: {{ include "secretName" $ }}, key: {{ . }}, optional: true } }
{{- end }}
{{- end }}
- name: DRAIN_SECONDS
  value: {{ .Values.drainSeconds | quote }}
- name: SHUTDOWN_SECONDS
  value: {{ .Values.shutdownSeconds | quote }}
- name: ABORT_GRACE_SECONDS
  value: {{ .Values.abortGraceSeconds | quote }}
{{- with .Values.urls.dashboard }}
- name: DASHBOARD_URL
  value: {{ . | quote }}
{{- end }}
{{- with .Values.urls.execution }}
- name: EXECUTION_URL
  value: {{ . | quote }}
{{- end }}
{{- with .Values.urls.browserContext }}
- name: BROWSER_CONTEXT_URL
  value: {{ . | quote }}
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* What pods of the API and of workers have in common. */}}
{{- define "pod" -}}
automountServiceAccountToken: false
# Variables that Kubernetes makes of the names of Services would be taken for settings, such as EXECUTION_PORT.
enableServiceLinks: false
terminationGracePeriodSeconds: {{ add .Values.drainSeconds .Values.shutdownSeconds .Values.abortGraceSeconds 10 }}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  seccompProfile: { type: RuntimeDefault }
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: tmp
    emptyDir: { sizeLimit: 2Gi }
  {{- with .Values.volumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "container" -}}
image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
volumeMounts:
  - name: tmp
    mountPath: /tmp
  {{- with .Values.volumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .Values.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
# The first process migrates the database before it serves.
startupProbe:
  httpGet: { path: /livez, port: management }
  periodSeconds: 2
  failureThreshold: 150
livenessProbe:
  httpGet: { path: /livez, port: management }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: { path: /readyz, port: management }
  periodSeconds: 2
  timeoutSeconds: 5
{{- end }}

{{- define "placement" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

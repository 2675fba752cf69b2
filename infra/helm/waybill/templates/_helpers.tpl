{{- define "waybill.name" -}}
{{- if contains "waybill" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-waybill" (.Release.Name | trunc 32 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "waybill.image" -}}
{{ printf "%s:%s" .image.repository (.image.tag | default .root.Chart.AppVersion) }}
{{- end }}

{{- /* Those that select pods: they never change. */}}
{{- define "waybill.selector" -}}
app.kubernetes.io/name: waybill
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "waybill.labels" -}}
app.kubernetes.io/name: waybill
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "waybill.configName" -}}
{{ include "waybill.name" . }}{{ if get . "hook" }}-migrate{{ end }}
{{- end }}

{{- /* What is no secret. */}}
{{- define "waybill.config" -}}
# One process a container: Kubernetes counts them.
PROCESSES: "1"
# Below the volume: Waybill insists on a folder that nobody else may read, and an emptyDir is open.
WAYBILL_HOME: /var/lib/waybill/home
METRICS_HOST: 0.0.0.0
METRICS_PORT: "9464"
{{- if not (get .Values.config "SMTP_URL") }}
{{- if .Values.roles.maillog.enabled }}
SMTP_URL: smtp://{{ include "waybill.name" . }}-mail:2525
{{- else }}
{{- fail "config.SMTP_URL should name your mail server, or roles.maillog.enabled should be true" }}
{{- end }}
{{- end }}
{{- range $name, $value := .Values.config }}
{{ $name }}: {{ $value | toString | quote }}
{{- end }}
{{- end }}

{{- /* The Secret that the chart makes, if any. */}}
{{- define "waybill.secret" -}}
{{- range $name, $value := .Values.secret.values }}
{{ $name }}: {{ $value | toString | quote }}
{{- end }}
{{- if not .Values.secret.existing }}
{{- range $name := list "MASTER_KEY" "OPERATOR_TOKEN" "WEBHOOK_SECRET" }}
{{- if not (get $.Values.secret.values $name) }}
{{- fail (printf "secret.values.%s should be set (openssl rand -base64 32), or secret.existing should name a Secret that has it" $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $setting, $store := dict "REDIS_URL" "redis" "DATABASE_URL" "database" "CLICKHOUSE_URL" "clickhouse" }}
{{- with index $.Values.stores $store }}
{{- if and .url .secret.name }}
{{- fail (printf "stores.%s should have either url or secret" $store) }}
{{- end }}
{{- if .url }}
{{ $setting }}: {{ .url | quote }}
{{- else if not (or .secret.name $.Values.secret.existing (get $.Values.secret.values $setting)) }}
{{- fail (printf "stores.%s should have url or secret, or secret.existing should name a Secret that has %s" $store $setting) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* A process's environment, beside its role. */}}
{{- define "waybill.environment" -}}
{{- with .Values.stores }}
{{- range $setting, $from := dict "REDIS_URL" .redis.secret "DATABASE_URL" .database.secret "CLICKHOUSE_URL" .clickhouse.secret "CLICKHOUSE_PASSWORD" .clickhouse.passwordSecret }}
{{- if $from.name }}
- name: {{ $setting }}
  valueFrom: { secretKeyRef: { name: {{ $from.name | quote }}, key: {{ required (printf "the Secret %s that has %s should have a key" $from.name $setting) $from.key | quote }} } }
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "waybill.environmentFrom" -}}
- configMapRef: { name: {{ include "waybill.configName" . }} }
{{- if .Values.secret.existing }}
- secretRef: { name: {{ .Values.secret.existing | quote }} }
{{- end }}
{{- if include "waybill.secret" . | trim }}
- secretRef: { name: {{ include "waybill.configName" . }} }
{{- end }}
{{- end }}

{{- /* A pod's members that all pods share. */}}
{{- define "waybill.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- end }}

{{- define "waybill.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "waybill.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- /* Ports, probes and end of a process. */}}
{{- define "waybill.process" -}}
ports:
  - { name: http, containerPort: 3000 }
  - { name: metrics, containerPort: 9464 }
{{- if eq .component "smtp" }}
  - { name: submission, containerPort: 2587 }
{{- end }}
# Until the stores answer and fit each other.
startupProbe:
  httpGet: { path: /health, port: http }
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: { path: /health, port: http }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- if or (eq .component "api") (eq .component "smtp") }}
# Not /ready: it says 503 while ClickHouse, say, is away, and then no process would take messages, although sending goes on.
readinessProbe:
  httpGet: { path: /health, port: http }
  periodSeconds: 2
  failureThreshold: 2
{{- else }}
# No requests come here: being ready tells a roll-out to go on with the next one.
readinessProbe:
  httpGet: { path: /ready, port: http }
  periodSeconds: 5
  failureThreshold: 3
{{- end }}
lifecycle:
  # Callers learn meanwhile that it ends. Then SIGTERM: gone within ten seconds.
  preStop: { sleep: { seconds: 5 } }
{{- end }}

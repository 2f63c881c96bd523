{{- define "waypost.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "waypost.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "waypost.labels" -}}
{{ include "waypost.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "waypost.secret" -}}
{{ required "existingSecret: the name of a secret with the database URL, the instance key and the admin token" .Values.existingSecret }}
{{- end }}

{{- define "waypost.claim" -}}
{{ .Values.media.existingClaim | default (ternary (printf "%s-media" (include "waypost.name" .)) "" .Values.media.create) }}
{{- end }}

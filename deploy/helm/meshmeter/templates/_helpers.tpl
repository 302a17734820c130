{{- define "meshmeter.name" -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "meshmeter.account" -}}
{{- .Values.serviceAccount.name | default (include "meshmeter.name" .) -}}
{{- end -}}

{{- define "meshmeter.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}

{{- define "meshmeter.labels" -}}
app.kubernetes.io/name: meshmeter
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* Labels by which `meshmeter cluster attach` and `cluster clean` find a run. */}}
{{- define "meshmeter.run" -}}
meshmeter.dev/run: {{ . }}
app.kubernetes.io/component: runner
{{- end -}}

{{/* A role and its binding. Keys: context, kind (Role or ClusterRole), name, namespace (of a Role), rules. */}}
{{- define "meshmeter.role" -}}
{{- $context := .context -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "meshmeter.labels" $context | nindent 4 }}
rules:
  {{- toYaml .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels:
    {{- include "meshmeter.labels" $context | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
subjects:
- kind: ServiceAccount
  name: {{ include "meshmeter.account" $context }}
  namespace: {{ $context.Release.Namespace }}
{{- end -}}

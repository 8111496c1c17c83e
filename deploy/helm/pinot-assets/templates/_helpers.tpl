{{/* Names. */}}
{{- define "pinot-assets.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "pinot-assets.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Whether Spark's executors are pods of this chart: "true" or nothing. */}}
{{- define "pinot-assets.executorPods" -}}
{{- if hasPrefix "k8s://" .Values.spark.master }}true{{ end -}}
{{- end -}}

{{/* Labels that selectors use: (list $ "webserver"). */}}
{{- define "pinot-assets.selector" -}}
{{ include "pinot-assets.release" (first .) }}
app.kubernetes.io/component: {{ last . }}
{{- end -}}

{{/* Labels of each pod of the release. */}}
{{- define "pinot-assets.release" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "pinot-assets.labels" -}}
{{ include "pinot-assets.selector" . }}
{{- with first . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}
{{- end -}}

{{/* Labels of a pod. */}}
{{- define "pinot-assets.podLabels" -}}
{{ include "pinot-assets.selector" . }}
app.kubernetes.io/part-of: pinot-assets
{{- with (first .).Values.podLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Pods restart when what they have mounted changes; the next run has it anyway. */}}
{{- define "pinot-assets.checksums" -}}
checksum/instance: {{ include (print .Template.BasePath "/instance.yaml") . | sha256sum }}
checksum/project: {{ include (print .Template.BasePath "/project.yaml") . | sha256sum }}
{{- end -}}

{{/* Who a pod runs as. */}}
{{- define "pinot-assets.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "pinot-assets.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* What all pods of the release say of themselves. */}}
{{- define "pinot-assets.placement" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
{{ toYaml . | indent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Variables of every process of Dagster. */}}
{{- define "pinot-assets.storageEnv" -}}
- name: DAGSTER_PG_USER
  valueFrom:
    secretKeyRef:
      name: {{ .Values.postgres.secret }}
      key: {{ .Values.postgres.userKey }}
- name: DAGSTER_PG_PASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ .Values.postgres.secret }}
      key: {{ .Values.postgres.passwordKey }}
{{- end -}}

{{/* Whether executors need a variable: "true" or nothing. They reach neither Pinot nor ZooKeeper. */}}
{{- define "pinot-assets.forExecutors" -}}
{{- if or (has . (list "PINOT_ASSETS_DATA" "PINOT_ASSETS_STAGING")) (not (regexMatch "^(PINOT|DAGSTER|OPENLINEAGE)_" .)) }}true{{ end -}}
{{- end -}}

{{/* Variables of values: (list $ "all") or (list $ "executors"). */}}
{{- define "pinot-assets.valuesEnv" -}}
{{- $all := eq (last .) "all" -}}
{{- with (first .).Values -}}
{{- range $name, $value := .env }}
{{- if or $all (include "pinot-assets.forExecutors" $name) }}
- name: {{ $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end }}
{{- range $name, $source := .secretEnv }}
{{- if or $all (include "pinot-assets.forExecutors" $name) }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: {{ $source.secret }}
      key: {{ $source.key }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Whether the chart has table specs to mount: "true" or nothing. */}}
{{- define "pinot-assets.ownTables" -}}
{{- with .Values.tables }}{{ if or .files .configMap .claim }}true{{ end }}{{ end -}}
{{- end -}}

{{/* Variables of the code location and of runs. */}}
{{- define "pinot-assets.projectEnv" -}}
{{ include "pinot-assets.storageEnv" . }}
{{- if include "pinot-assets.ownTables" . }}
- name: PINOT_ASSETS_TABLES
  value: /srv/project/tables
{{- end }}
{{- if .Values.policy }}
- name: PINOT_ASSETS_POLICY
  value: /etc/pinot-assets/project/policy.yaml
{{- end }}
- name: PINOT_ASSETS_SPARK_MASTER
  value: {{ .Values.spark.master | quote }}
- name: PINOT_ASSETS_SPARK_PROPERTIES
  value: /etc/pinot-assets/project/spark.conf
{{- include "pinot-assets.valuesEnv" (list . "all") }}
{{- end -}}

{{/* The volumes of every process of Dagster; dagster.yaml lies over the emptyDir. */}}
{{- define "pinot-assets.storageVolumes" -}}
- name: instance
  configMap:
    name: {{ include "pinot-assets.fullname" . }}-instance
- name: home
  emptyDir:
    sizeLimit: 1Gi
{{- end -}}

{{- define "pinot-assets.storageMounts" -}}
- name: home
  mountPath: /opt/dagster
- name: instance
  mountPath: /opt/dagster/dagster.yaml
  subPath: dagster.yaml
  readOnly: true
- name: tmp
  mountPath: /tmp
{{- end -}}

{{- define "pinot-assets.projectVolumes" -}}
{{ include "pinot-assets.storageVolumes" . }}
- name: project
  configMap:
    name: {{ include "pinot-assets.fullname" . }}-project
{{- with .Values.tables }}
{{- if .claim }}
- name: tables
  persistentVolumeClaim:
    claimName: {{ .claim }}
    readOnly: true
{{- else if .configMap }}
- name: tables
  configMap:
    name: {{ .configMap }}
{{- else if .files }}
- name: tables
  configMap:
    name: {{ include "pinot-assets.fullname" $ }}-tables
{{- end }}
{{- end }}
{{- range $secret, $folder := .Values.secretMounts }}
- name: secret-{{ $secret }}
  secret:
    secretName: {{ $secret }}
    defaultMode: 288  # 0440
{{- end }}
{{- end -}}

{{- define "pinot-assets.projectMounts" -}}
{{ include "pinot-assets.storageMounts" . }}
- name: project
  mountPath: /etc/pinot-assets/project
  readOnly: true
{{- if include "pinot-assets.ownTables" . }}
- name: tables
  mountPath: /srv/project/tables
  readOnly: true
{{- end }}
{{- range $secret, $folder := .Values.secretMounts }}
- name: secret-{{ $secret }}
  mountPath: {{ $folder }}
  readOnly: true
{{- end }}
{{- end -}}

{{/* Stops where values contradict each other. */}}
{{- define "pinot-assets.check" -}}
{{- with .Values -}}
{{- if gt (len (compact (list .tables.configMap .tables.claim (ternary "files" "" (gt (len .tables.files) 0))))) 1 }}
{{- fail "tables: set one of files, configMap and claim" }}
{{- end }}
{{- range $name, $_ := .secretEnv }}
{{- if hasKey $.Values.env $name }}
{{- fail (printf "%s is in env and in secretEnv: keep one of them" $name) }}
{{- end }}
{{- end }}
{{- $controller := required "env.PINOT_CONTROLLER_URL is required: the address of Pinot's controller" .env.PINOT_CONTROLLER_URL }}
{{- $zookeeper := required "env.PINOT_ZOOKEEPER is required: the addresses of Pinot's ZooKeeper" .env.PINOT_ZOOKEEPER }}
{{- $_ := required "postgres.host is required: the server of Dagster's storage" .postgres.host }}
{{- $_ := required "postgres.secret is required: the name of the Secret with user and password" .postgres.secret }}
{{- $url := urlParse $controller }}
{{- $port := trimPrefix ":" (regexFind ":[0-9]+$" $url.host) | default (ternary "443" "80" (eq $url.scheme "https")) }}
{{- if not (has $port (toStrings .networkPolicy.pinot.ports)) }}
{{- fail (printf "networkPolicy.pinot.ports lacks %s, the port of env.PINOT_CONTROLLER_URL" $port) }}
{{- end }}
{{- range splitList "," (first (splitList "/" $zookeeper)) }}
{{- $port := trimPrefix ":" (regexFind ":[0-9]+$" .) }}
{{- if not (has $port (toStrings $.Values.networkPolicy.zookeeper.ports)) }}
{{- fail (printf "networkPolicy.zookeeper.ports lacks the port of %s, of env.PINOT_ZOOKEEPER" .) }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

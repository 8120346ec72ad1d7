{{- /* Labels of every object. Pods have none of them but part-of: a new release of the chart alone restarts nothing. */}}
{{- define "holdfast.labels" -}}
app.kubernetes.io/part-of: holdfast
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The same with labels that the object has of its own, which take precedence over the common ones. Of a list: the root, these. */}}
{{- define "holdfast.labelsWith" -}}
{{- toYaml (merge (deepCopy (index . 1)) (include "holdfast.labels" (index . 0) | fromYaml)) }}
{{- end }}

{{- /* The image of a process: its own, if its values have one, or that of all. Of a list: the root, the process's values. */}}
{{- define "holdfast.image" -}}
{{- $root := index . 0 }}
{{- $own := (index . 1).image | default dict }}
{{- $common := $root.Values.image }}
{{- $repository := coalesce $own.repository $common.repository }}
{{- if not $repository }}
{{- fail "image.repository is not set: no image of Holdfast is published, so build one (docs/install.md#image) and name it" }}
{{- end }}
{{- if and $common.digest $own.repository (not $own.tag) (not $own.digest) }}
{{- fail (printf "fdb.image.repository is %s without a digest or a tag, and image.digest is of another image: set fdb.image.digest" $own.repository) }}
{{- end }}
{{- if $own.digest }}
{{- printf "%s@%s" $repository $own.digest }}
{{- else if and $common.digest (not $own.repository) (not $own.tag) }}
{{- printf "%s@%s" $repository $common.digest }}
{{- else }}
{{- printf "%s:%s" $repository (coalesce $own.tag $common.tag $root.Chart.AppVersion) }}
{{- end }}
{{- end }}

{{- /* What of a Pod is the cluster's affair. Of a list: the root, the process's values. */}}
{{- define "holdfast.pod" -}}
{{- $root := index . 0 }}
{{- $process := index . 1 }}
{{- $pod := dict }}
{{- with $root.Values.imagePullSecrets }}
{{- $_ := set $pod "imagePullSecrets" . }}
{{- end }}
{{- range $field := list "nodeSelector" "tolerations" "affinity" "priorityClassName" }}
{{- with index $process $field }}
{{- $_ := set $pod $field . }}
{{- end }}
{{- end }}
{{- with $pod }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{- /* The environment of all processes: HOLDFAST_<FLAG> for every flag, and Temporal's own variables. */}}
{{- define "holdfast.settings" -}}
{{- $temporal := .Values.temporal }}
{{- $settings := dict "HOLDFAST_CLUSTER_ID" .Values.clusterID }}
{{- $_ := set $settings "TEMPORAL_ADDRESS" $temporal.address }}
{{- $_ := set $settings "TEMPORAL_NAMESPACE" $temporal.namespace }}
{{- if $temporal.tls.enabled }}
{{- $_ := set $settings "TEMPORAL_TLS" "true" }}
{{- end }}
{{- if $temporal.tls.serverCA }}
{{- $_ := set $settings "TEMPORAL_TLS_SERVER_CA_CERT_PATH" "/etc/holdfast/temporal/ca.crt" }}
{{- end }}
{{- if $temporal.tls.clientCertificate }}
{{- $_ := set $settings "TEMPORAL_TLS_CLIENT_CERT_PATH" "/etc/holdfast/temporal/tls.crt" }}
{{- $_ := set $settings "TEMPORAL_TLS_CLIENT_KEY_PATH" "/etc/holdfast/temporal/tls.key" }}
{{- end }}
{{- if .Values.payloadEncryption.enabled }}
{{- $_ := set $settings "HOLDFAST_PAYLOAD_KEYS_DIR" "/etc/holdfast/payload-keys" }}
{{- end }}
{{- range $name, $_ := $settings }}
{{- if hasKey $.Values.settings $name }}
{{- fail (printf "settings.%s: the chart sets it by temporal.tls or payloadEncryption; remove it from settings" $name) }}
{{- end }}
{{- end }}
{{- toYaml (merge $settings .Values.settings) }}
{{- end }}

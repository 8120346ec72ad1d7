package chart

import "slices"

// process puts the values of a process into its Deployment and its budget.
func process(values string) func(string) (string, error) {
	return func(document string) (string, error) {
		if kindOf(document) == "PodDisruptionBudget" {
			document, err := spliced(document, splice{
				`(?m)^  maxUnavailable: 1\n`,
				"  maxUnavailable: {{ .Values.podDisruptionBudget.maxUnavailable }}\n",
			})
			return "{{- if .Values.podDisruptionBudget.enabled }}\n" + document + "{{- end }}\n", err
		}
		splices := slices.Clip(common)
		switch values {
		case "watcher":
			splices = append(splices, splice{
				`\[--serve=velero\].*\n`, "[--serve={{ ternary \"all\" \"velero\" .Values.fdb.enabled }}]\n",
			})
		case "fdb":
			splices = append(splices, fdbTools)
		}
		document, err := spliced(document, splices...)
		return "{{- $process := .Values." + values + " }}\n" + document, err
	}
}

// common is where values go in every Deployment.
var common = []splice{
	{`(?m)^  replicas: 2\n`, "  replicas: {{ $process.replicas }}\n"},
	{`(?m)^    metadata:\n      labels:\n        app\.kubernetes\.io/name: \S+\n`, `OLD        app.kubernetes.io/part-of: holdfast
        {{- with $process.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      annotations:
        checksum/settings: {{ include "holdfast.settings" . | sha256sum }}
        {{- with $process.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
`},
	{`(?m)^      serviceAccountName: \S+\n`, `OLD      {{- with include "holdfast.pod" (list . $process) }}
      {{- . | nindent 6 }}
      {{- end }}
`},
	{`(?m)^      topologySpreadConstraints:\n(?: {8}.*\n)+`, `      {{- with $process.topologySpreadConstraints }}
      topologySpreadConstraints:
        {{- toYaml . | nindent 8 }}
      {{- else }}
OLD      {{- end }}
`},
	{`(?m)^          image: registry\.invalid/.*\n`, `          image: {{ include "holdfast.image" (list . $process) }}
          {{- with .Values.image.pullPolicy }}
          imagePullPolicy: {{ . }}
          {{- end }}
`},
	{
		`(?m)^            - name: GOMEMLIMIT\n              value: \S+\n`,
		"            - name: GOMEMLIMIT\n              value: {{ $process.goMemoryLimit | quote }}\n",
	},
	{
		`(?m)^                  name: holdfast-temporal\n                  key: api-key\n`,
		"                  name: {{ .Values.temporal.apiKey.secretName | quote }}\n" +
			"                  key: {{ .Values.temporal.apiKey.key | quote }}\n",
	},
	{`(?m)^          ports:\n`, `            {{- with $process.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
OLD`},
	{`(?m)^          resources:(?: #.*)?\n(?: {12}.*\n)+`, `          resources:
            {{- toYaml $process.resources | nindent 12 }}
`},
	{`(?m)^            secretName: holdfast-temporal\n`, "            secretName: {{ .Values.temporal.tls.secretName | quote }}\n"},
	{
		`(?m)^            secretName: holdfast-payload-keys\n`,
		"            secretName: {{ .Values.payloadEncryption.secretName | quote }}\n",
	},
}

// fdbTools has a container for each release of FoundationDB's tools.
var fdbTools = splice{`(?m)^      initContainers:\n(?: {8}.*\n)+`, `      initContainers:
        {{- range $release, $image := $process.tools }}
        - name: fdb-tools-{{ $release | replace "." "-" }}
          image: {{ $image | quote }}
          args:
            - --mode=init
            - --output-dir=/var/output-files
            - --copy-binary=fdbbackup
            - --copy-binary=fdbrestore
            - --copy-binary=fdbcli
          volumeMounts:
            - name: fdb-tools
              mountPath: /var/output-files
          resources:
            {{- toYaml $process.toolsResources | nindent 12 }}
          securityContext:
            {{- with $process.toolsRunAsUser }}
            runAsUser: {{ int64 . }}
            {{- end }}
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
        {{- end }}
`}

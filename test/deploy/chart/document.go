package chart

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	kind      = regexp.MustCompile(`(?m)^kind: (\S+)$`)
	metadata  = regexp.MustCompile(`(?m)^metadata:\n(?: {2}.*\n)+`)
	name      = regexp.MustCompile(`(?m)^  name: (\S+)$`)
	namespace = regexp.MustCompile(`(?m)^( *namespace: )openshift-adp$`)
)

// processes are the service accounts of processes, by the values that are theirs.
var processes = map[string]string{
	"holdfast-worker": "worker", "holdfast-watcher": "watcher", "holdfast-fdb": "fdb", "holdfast-drills": "drills.worker",
}

// place puts a document into the release: into its namespace, with its labels, of which part-of is one.
func place(document string) (string, error) {
	head := metadata.FindString(document)
	if head == "" {
		return "", errors.New("a document without metadata")
	}
	const labels = "  labels:\n    {{- include \"holdfast.labels\" . | nindent 4 }}\n"
	changed := strings.Replace(head, "    app.kubernetes.io/part-of: holdfast\n", "", 1)
	if strings.Contains(head, "  labels:\n") {
		changed = strings.Replace(changed, "  labels:\n", labels, 1)
	} else {
		changed += labels
	}
	if values := processes[nameOf(document)]; values != "" && kindOf(document) == "ServiceAccount" {
		changed += `  {{- with .Values.` + values + `.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
`
	}
	document = strings.Replace(document, head, changed, 1)
	if kindOf(document) != "CustomResourceDefinition" { // whose descriptions may name it
		document = namespace.ReplaceAllString(document, "${1}{{ .Release.Namespace | quote }}")
	}
	return document, nil
}

func kindOf(document string) string { return first(kind, document) }

func nameOf(document string) string { return first(name, document) }

func first(pattern *regexp.Regexp, document string) string {
	if match := pattern.FindStringSubmatch(document); match != nil {
		return match[1]
	}
	return ""
}

// splice puts something in the place of the one text that a pattern matches; OLD in it is that text.
type splice struct{ old, new string }

// spliced carries out all of them. A pattern that matches nothing, or twice, is an error: the manifest has changed.
func spliced(document string, splices ...splice) (string, error) {
	for _, s := range splices {
		found := regexp.MustCompile(s.old).FindAllString(document, -1)
		if len(found) != 1 {
			return "", fmt.Errorf("%s %s: %s must match once, and matches %d times", kindOf(document), nameOf(document), s.old, len(found))
		}
		document = strings.Replace(document, found[0], strings.ReplaceAll(s.new, "OLD", found[0]), 1)
	}
	return document, nil
}

// keepable has `helm uninstall` leave a kind, and with it all objects of that kind.
func keepable(document string) (string, error) {
	return spliced(document, splice{`(?m)^  annotations:\n`, `OLD    {{- if .Values.crds.keep }}
    helm.sh/resource-policy: keep
    {{- end }}
`})
}

// variable puts a value in the place of the expression of a variable of an admission policy.
func variable(name, expression string) splice {
	return splice{
		`(?m)^    - name: ` + name + `\n      expression: .*\n`,
		"    - name: " + name + "\n      expression: {{ " + expression + " | quote }}\n",
	}
}

// names are a list of strings for a variable.
func names(values string) string {
	return `ternary "[]" (printf "['%s']" (join "', '" ` + values + `)) (empty ` + values + `)`
}

// changeable are the variables that administrators may change, by the admission policy.
var changeable = map[string][]splice{
	"holdfast-restores": {
		variable("allowVolumeSnapshotContents", ".Values.restoresFromTenantsLocations.allowVolumeSnapshotContents | toString"),
		variable("allowSnapshotSecrets", ".Values.restoresFromTenantsLocations.allowSnapshotSecrets | toString"),
		variable("defaultPodSecurityLevel", `printf "'%s'" .Values.restoresFromTenantsLocations.defaultPodSecurityLevel`),
		variable("securityContextConstraints", names(".Values.restoresFromTenantsLocations.securityContextConstraints")),
	},
	"holdfast-drills": {
		variable("podSecurityLevels", names(".Values.drills.podSecurityLevels")),
		variable("podSecurityVersions", names(".Values.drills.podSecurityVersions")),
	},
	"holdfast-drill-contents": {
		variable("priorityClasses", names(".Values.drills.priorityClasses")),
		variable("finalizers", names(".Values.drills.finalizers")),
	},
}

// switches put values into the admission policies.
func switches(document string) (string, error) {
	if kindOf(document) != "ValidatingAdmissionPolicy" {
		return document, nil
	}
	return spliced(document, changeable[nameOf(document)]...)
}

// temporalNamespace lays the policy where Temporal is.
func temporalNamespace(document string) (string, error) {
	return spliced(document, splice{
		`(?m)^  name: holdfast-temporal\n`,
		"OLD  namespace: {{ .Values.networkPolicy.namespace | default .Release.Namespace | quote }}\n",
	})
}

func endpoint(document string) (string, error) {
	return spliced(document,
		splice{
			`(?m)^    \{\{- include "holdfast\.labels" .*\n`,
			"    {{- include \"holdfast.labelsWith\" (list . .Values.podMonitor.labels) | nindent 4 }}\n",
		},
		splice{`(?m)^    - port: metrics\n`, `OLD      {{- with .Values.podMonitor.endpoint }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
`})
}

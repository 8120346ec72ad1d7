package outage

import (
	"regexp"
	"strings"
)

// What objects hold in the words of the build that wrote them, one line of JSON each: texts for people, the kinds that no backup
// holds, the object that a status is of, the conditions that sum the others up, and the label that keeps agents out of backups.
// Agents' pods are replaced when it comes.
var (
	anyMessage  = regexp.MustCompile(`("message": "|PersistentVolume [^ "]+: )(\\.|[^"\\])*"`)
	ofOneBuild  = regexp.MustCompile(`(?m)^ *("[a-z.]+\.holdfast\.dev"|"uid": "[^"]*"|"velero\.io/exclude-from-backup": "true"),?\n`)
	anySummary  = regexp.MustCompile(`\n *\{\n *"type": "(?:Complete|Ready|Reconciling|Stalled)"[^{}]*\},?`)
	anyObserved = regexp.MustCompile(`(?m)^  "observedGeneration": -?\d+,?\n`)
	anyRevision = regexp.MustCompile(`("deployment\.kubernetes\.io/revision": )"\d+"`)
	lastComma   = regexp.MustCompile(`,(\n *[}\]])`)
)

// OfAnyBuild takes out of indented JSON what a build may write otherwise than the one beside it.
func OfAnyBuild(text string) string {
	text = ofOneBuild.ReplaceAllString(anyMessage.ReplaceAllString(text, `$1"`), "")
	text = anyObserved.ReplaceAllString(anySummary.ReplaceAllString(text, ""), "")
	return lastComma.ReplaceAllString(anyRevision.ReplaceAllString(text, `$1""`), "$1")
}

// OfAnyBuilds does so for each of them.
func OfAnyBuilds(texts []string) []string {
	var plain []string
	for _, text := range texts {
		plain = append(plain, OfAnyBuild(text))
	}
	return plain
}

// WithoutWritesOf leaves out the writes of a resource: two builds that want it otherwise write it in turn while both serve.
func WithoutWritesOf(resource string, writes []string) []string {
	var left []string
	for _, write := range writes {
		if !strings.Contains(write, " "+resource+" ") {
			left = append(left, write)
		}
	}
	return left
}

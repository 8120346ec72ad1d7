package locationspec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"holdfast.dev/holdfast/k8s/shorten"
	"holdfast.dev/holdfast/workflows/contract"
)

const (
	maxChanges     = 40
	maxChangeBytes = 200
)

// SameButCredential reports whether two specs are equal except for their credential, which needs no approval.
func SameButCredential(a, b *velerov1.BackupStorageLocationSpec) bool {
	if a == nil || b == nil {
		return a == b
	}
	a, b = a.DeepCopy(), b.DeepCopy()
	a.Credential, b.Credential = nil, nil
	return apiequality.Semantic.DeepEqual(a, b)
}

// Changes returns the fields in which two specs differ, for people to read. Fields of config are last, because a tenant chooses
// their keys: they must not push out the fields that a decision is about. Otherwise fields are in the order of their paths.
// Values and paths are bounded, a certificate is shown as its fingerprint, and unprintable text is quoted. If there are too
// many fields, the last entry says how many are left out. A nil spec has no fields.
func Changes(before, after *velerov1.BackupStorageLocationSpec) []contract.FieldChange {
	was, is := fieldsOf(before), fieldsOf(after)
	fields := maps.Clone(was)
	maps.Copy(fields, is)
	var changes []contract.FieldChange
	for _, field := range slices.SortedFunc(maps.Keys(fields), byWeight) {
		from, existed := was[field]
		to, exists := is[field]
		if existed != exists || from != to {
			changes = append(changes, contract.FieldChange{Field: shown(field), From: shown(from), To: shown(to)})
		}
	}
	if len(changes) > maxChanges {
		rest := fmt.Sprintf("... and %d more", len(changes)-maxChanges+1)
		changes = append(changes[:maxChanges-1], contract.FieldChange{Field: rest})
	}
	return changes
}

// byWeight orders fields: Velero's own first, then the keys of config that plugins know, then the others.
func byWeight(a, b string) int {
	return cmp.Or(cmp.Compare(weight(a), weight(b)), strings.Compare(a, b))
}

func weight(field string) int {
	key, isConfig := strings.CutPrefix(field, "config.")
	switch {
	case !isConfig:
		return 0
	case slices.Contains(knownConfig, key):
		return 1
	}
	return 2
}

// knownConfig are the keys of spec.config that Velero's plugins for AWS, GCP and Azure read, and its repositories.
var knownConfig = []string{
	"s3Url", "publicUrl", "region", "s3ForcePathStyle", "profile", "insecureSkipTLSVerify", "serverSideEncryption", "kmsKeyId",
	"signatureVersion", "checksumAlgorithm", "tagging", "enableSharedConfig", "serviceAccount", "kmsKeyName",
	"resourceGroup", "storageAccount", "storageAccountKeyEnvVar", "storageAccountURI", "subscriptionId", "blockSizeInBytes",
	"useAAD", "activeDirectoryAuthorityURI",
}

// fieldsOf returns the fields of a spec by their JSON paths, so that fields of a newer Velero are not missed.
func fieldsOf(spec *velerov1.BackupStorageLocationSpec) map[string]string {
	fields := map[string]string{}
	if spec == nil {
		return fields
	}
	spec = spec.DeepCopy()
	if spec.ObjectStorage != nil && len(spec.ObjectStorage.CACert) > 0 {
		fields["objectStorage.caCert"] = fingerprint(spec.ObjectStorage.CACert)
		spec.ObjectStorage.CACert = nil
	}
	for key, value := range spec.Config {
		if value == "" {
			value = `""` // a key with an empty value is not the same as no key
		}
		fields["config."+key] = value
	}
	spec.Config = nil
	content, _ := json.Marshal(spec) // cannot fail: strings, numbers and structs of them
	var decoded map[string]any
	_ = json.Unmarshal(content, &decoded)
	flatten("", decoded, fields)
	return fields
}

func flatten(path string, value any, into map[string]string) {
	switch value := value.(type) {
	case map[string]any:
		for key, element := range value {
			flatten(strings.TrimPrefix(path+"."+key, "."), element, into)
		}
	case nil:
	case string:
		if value != "" {
			into[path] = value
		}
	default:
		content, _ := json.Marshal(value) // cannot fail: it was decoded from JSON
		into[path] = string(content)
	}
}

// shown bounds a text and quotes it if it is not printable: it goes to terminals and into Markdown. A text that is cut keeps a
// fingerprint, so that a change in the part cut off is visible.
func shown(text string) string {
	whole := text
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		text = strconv.Quote(text)
	}
	if len(text) <= maxChangeBytes {
		return text
	}
	mark := " (" + fingerprint([]byte(whole)) + ")"
	return shorten.Text(text, maxChangeBytes-len(mark)) + mark
}

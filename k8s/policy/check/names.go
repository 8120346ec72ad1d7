package check

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
)

// NameProblems says why no object can have a name. Asking the API server for such a name fails for ever, and not with
// NotFound.
func NameProblems(name string) []string {
	if len(name) > validation.DNS1123SubdomainMaxLength {
		return []string{fmt.Sprintf("must be no more than %d characters", validation.DNS1123SubdomainMaxLength)}
	}
	return content.IsPathSegmentName(name)
}

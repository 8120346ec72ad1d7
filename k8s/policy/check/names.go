package check

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
)

// NameProblems says why no object can have a name. The API server never answers NotFound to a request for such a name.
func NameProblems(name string) []string {
	if len(name) > validation.DNS1123SubdomainMaxLength {
		return []string{fmt.Sprintf("must be no more than %d characters", validation.DNS1123SubdomainMaxLength)}
	}
	return content.IsPathSegmentName(name)
}

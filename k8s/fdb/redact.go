package fdb

import (
	"cmp"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"holdfast.dev/holdfast/k8s/shorten"
)

// mask replaces a secret.
const mask = "***"

// anyURL finds URLs in the text of a tool.
var anyURL = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s'"` + "`" + `<>]+`)

// secretParameter finds parameters of a URL that may hold a secret: a header can be anything, for example Authorization.
var secretParameter = regexp.MustCompile(`(?i)([?&](?:header|[a-z_]*(?:secret|token|password|api_?key)[a-z_]*)=)[^&]*`)

// Redact returns the text without the secrets, in whatever encoding, and without parts of URLs that could be secrets.
func Redact(text string, secrets []string) string {
	var forms []string
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		escaped := url.QueryEscape(secret)
		forms = append(forms, secret, escaped, strings.ReplaceAll(escaped, "+", "%20"), url.PathEscape(secret))
		if quoted, err := json.Marshal(secret); err == nil {
			forms = append(forms, strings.Trim(string(quoted), `"`))
		}
	}
	// Longer ones first: else a secret that begins with another would be removed only in part.
	slices.SortStableFunc(forms, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, form := range forms {
		if form != "" {
			pairs = append(pairs, form, mask)
		}
	}
	text = strings.NewReplacer(pairs...).Replace(text)
	return anyURL.ReplaceAllStringFunc(text, CleanURL)
}

// CleanURL returns a URL without secrets; the same one if it has none.
func CleanURL(given string) string {
	scheme, rest, found := strings.Cut(given, "://")
	if !found || scheme == "file" {
		return given
	}
	rest = secretParameter.ReplaceAllString(rest, "${1}"+mask)
	// The tools end name and secret at the first @. To cut at the last one removes a secret that contains an @ completely.
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		if name, _, hasSecret := strings.Cut(rest[:at], ":"); hasSecret {
			rest = name + rest[at:]
		}
	}
	return scheme + "://" + rest
}

// Bound returns the text on one line, in at most n bytes. A cut is marked.
func Bound(text string, n int) string {
	text = strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if n < len("...") {
		return ""
	}
	return shorten.Text(text, n)
}

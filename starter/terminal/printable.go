package terminal

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable is text in which nothing can steer a terminal or feign a line: tenants write some of what is shown.
func Printable(text string) string {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		quoted := strconv.QuoteToGraphic(text)
		return quoted[1 : len(quoted)-1]
	}
	return text
}

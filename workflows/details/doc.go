// Package details formats what workflows show in Markdown: tenants' texts on one line, times, words for unknown values.
//
// Workflows call it.
package details

// Package details writes what workflows show in Markdown: texts of tenants on one line, times, words for what is not known.
//
// Workflows call it. It imports nothing of ours.
package details

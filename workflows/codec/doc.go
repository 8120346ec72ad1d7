// Package codec encrypts what Holdfast hands to Temporal: inputs, results, signals, answers to queries, summaries and the
// messages of errors. Anyone who has Temporal's database or its API then sees IDs and search attributes, and no content.
//
// workflows/connect, worker and starter call it. It is no workflow code.
package codec

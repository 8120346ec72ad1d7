// Package activities acts on what the workflows decide: it reads the present state from the API server itself, never
// from a cache, writes what is due, and returns the facts that decide the next step. Every activity is idempotent and
// may run twice, late, or at the same time as another attempt of itself.
package activities

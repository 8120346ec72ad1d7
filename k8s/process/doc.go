// Package process holds the parts of every Holdfast process: flags with their environment variables, a logger, the health and
// metrics servers, and a graceful end on signals.
//
// worker and starter call it.
package process

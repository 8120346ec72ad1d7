// Package terminal knows which text may be shown on a person's terminal.
package terminal

// Package shorten cuts a text to what the API server takes of it, such as an Event's note.
//
// Whoever writes texts into objects and Events calls it. It imports nothing of ours.
package shorten

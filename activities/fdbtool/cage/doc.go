// Package cage runs a program that is trusted little. A copy of this process gives up by Landlock, an access control of Linux,
// what the program does not need, closes what it has inherited, and becomes the program. Nothing of it needs privileges.
//
// Package fdbtool runs tools by it, and worker's main begins with it. It imports nothing of ours.
package cage

// Package cage runs a program that is not trusted. A copy of this process drops, by Landlock, an access control of Linux, the
// rights that the program does not need, closes the inherited file descriptors, and executes the program. It needs no privileges.
//
// Package fdbtool runs tools in it. A program that imports it can be copied so: the copy goes no further than this package's
// init.
package cage

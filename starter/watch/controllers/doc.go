// Package controllers is the watcher for all kinds: its workqueue, the decision whether and when an object's workflow is
// signalled, and the turns in which new objects start.
//
// A kind is a value of type Kind; packages velero and fdb make them, and package watch runs them. This package decides only
// whether an object is settled, by a View that the kind made of it. It knows no kind.
package controllers

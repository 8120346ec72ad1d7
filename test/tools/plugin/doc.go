// Package plugin packs `kubectl holdfast` for its users: an archive for each platform, and the manifest by which krew installs
// it.
//
// `make plugin` calls it. The same sources, version and Go give the same bytes.
package plugin

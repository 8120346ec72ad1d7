package state

import (
	"bytes"
	"slices"
)

// KeyValue is a key with its value.
type KeyValue struct {
	Key   []byte `json:"k"`
	Value []byte `json:"v"`
}

// Mutation is one change of the keys. It sets Key to Value, or clears what lies from Key up to End.
type Mutation struct {
	Version int64  `json:"at"`
	Key     []byte `json:"k"`
	Value   []byte `json:"v,omitempty"`
	End     []byte `json:"e,omitempty"` // set: a clear
}

// Data are a cluster's keys, sorted, and the changes that running backups have not logged yet.
type Data struct {
	Keys      []KeyValue `json:"keys"`
	Mutations []Mutation `json:"mutations,omitempty"`
	Last      int64      `json:"last"` // version of the last change
}

func (d *Data) find(key []byte) (int, bool) {
	return slices.BinarySearchFunc(d.Keys, key, func(kv KeyValue, key []byte) int { return bytes.Compare(kv.Key, key) })
}

// Get returns a key's value.
func (d *Data) Get(key []byte) ([]byte, bool) {
	at, found := d.find(key)
	if !found {
		return nil, false
	}
	return d.Keys[at].Value, true
}

// In returns the keys of a range with their values.
func (d *Data) In(r Range) []KeyValue {
	from, _ := d.find(r.Begin)
	to, _ := d.find(r.End)
	if to < from {
		return nil
	}
	return d.Keys[from:to]
}

// Apply changes the keys without a record of it: it is how a restore writes.
func (d *Data) Apply(m Mutation) {
	if m.End == nil {
		at, found := d.find(m.Key)
		if found {
			d.Keys[at].Value = m.Value
			return
		}
		d.Keys = slices.Insert(d.Keys, at, KeyValue{Key: m.Key, Value: m.Value})
		return
	}
	from, _ := d.find(m.Key)
	to, _ := d.find(m.End)
	if to > from {
		d.Keys = slices.Delete(d.Keys, from, to)
	}
}

// Change applies a mutation as a transaction does: at a version of its own, to be logged by the backups.
func (d *Data) Change(now int64, m Mutation) {
	d.Last = max(now, d.Last+1)
	m.Version = d.Last
	d.Apply(m)
	d.Mutations = append(d.Mutations, m)
}

// Since returns the changes from one version up to, not including, another.
func (d *Data) Since(from, to int64) []Mutation {
	var found []Mutation
	for _, m := range d.Mutations {
		if m.Version >= from && m.Version < to {
			found = append(found, m)
		}
	}
	return found
}

// Forget drops the changes before a version.
func (d *Data) Forget(before int64) {
	d.Mutations = slices.DeleteFunc(d.Mutations, func(m Mutation) bool { return m.Version < before })
}

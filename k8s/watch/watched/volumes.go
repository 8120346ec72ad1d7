package watched

import "sync"

// Volumes knows which of Velero's objects have, or have had, volumes. Only the metadata of volumes are watched. Every signal says
// it, so that no workflow lists them for an object that has none, as most have.
type Volumes struct {
	mutex sync.Mutex
	// of are those with a volume; true from a volume's event until somebody takes note of it.
	of map[string]bool
}

// Add notes a volume's event.
func (v *Volumes) Add(of string) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.of == nil {
		v.of = map[string]bool{}
	}
	v.of[of] = true
}

// Forget is to be called when an object is gone.
func (v *Volumes) Forget(of string) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	delete(v.of, of)
}

// Take reports whether an object has volumes, and whether an event of one has come since it was asked last.
func (v *Volumes) Take(of string) (has, moved bool) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	moved, has = v.of[of]
	if has {
		v.of[of] = false
	}
	return has, moved
}

// putBack undoes a Take that came to nothing.
func (v *Volumes) putBack(of string) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if _, has := v.of[of]; has {
		v.of[of] = true
	}
}

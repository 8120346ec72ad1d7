package controllers

import "sync"

// Volumes knows which Velero objects have, or have had, volumes. Only the metadata of volumes are watched. Every signal says
// it, so that no workflow lists volumes for an object without any, which most are.
type Volumes struct {
	mutex sync.Mutex
	// of are those with a volume; true from a volume's event until Take.
	of map[string]bool
}

// Add records a volume's event.
func (v *Volumes) Add(of string) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.of == nil {
		v.of = map[string]bool{}
	}
	v.of[of] = true
}

// Forget is called when an object is gone.
func (v *Volumes) Forget(of string) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	delete(v.of, of)
}

// Take reports whether an object has volumes, and whether one of them has had an event since the last Take.
func (v *Volumes) Take(of string) (has, moved bool) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	moved, has = v.of[of]
	if has {
		v.of[of] = false
	}
	return has, moved
}

// putBack undoes a Take whose result was not used.
func (v *Volumes) putBack(of string) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if _, has := v.of[of]; has {
		v.of[of] = true
	}
}

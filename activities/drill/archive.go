package drill

import (
	"bytes"
	"context"
	"errors"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/activities/backup"
	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/digest"
	"holdfast.dev/holdfast/k8s/objectstore"
)

// maxChanges is how many changes of an archive are found: the status counts those that it does not show.
const maxChanges = 1000

const notFound = "a change of its archive would not be found"

// compareArchive says what in the archive is not what it was when the backup was complete, as far as there are digests of that.
func (a *Activities) compareArchive(
	ctx context.Context, o *objects, made *velerov1.Backup, store *objectstore.Store,
) ([]finding, error) {
	set, err := a.Digests.Of(ctx, made)
	if err != nil {
		return nil, err
	}
	key, err := a.Digests.Key(ctx)
	switch {
	case err != nil:
		return nil, err
	case set == nil && backup.DigestsDue(made) && !o.View().Late:
		return nil, &activities.NotYetError{For: "the digests of the backup to be recorded"}
	case set == nil:
		return []finding{notVerified("there are no digests of the backup (%s): %s", missing(made), notFound)}, nil
	case key == nil || !bytes.Equal(set.KeyID, key.ID()):
		return []finding{notVerified("the digests of the backup were made with another key: %s", notFound)}, nil
	}
	changes := &changes{
		key: key, set: set, read: map[string]bool{}, seen: map[digest.Place]bool{}, reported: map[digest.Place]bool{},
	}
	err = store.BackupArchive(ctx, made.Name,
		func(file string) bool {
			_, _, found := digest.PlaceOf(file, o.Drill.Namespace)
			return found && changes.once(file)
		},
		func(file string, content []byte) error {
			place, copied, _ := digest.PlaceOf(file, o.Drill.Namespace)
			return changes.compare(place, copied, content)
		})
	if err != nil && !errors.Is(err, errManyChanges) {
		return nil, err
	}
	return changes.all(err == nil), nil
}

// missing says why there are no digests.
func missing(made *velerov1.Backup) string {
	switch why := made.Annotations[holdfastv1alpha1.AnnotationDigests]; why {
	case "":
		return "it was made while drills were off"
	case holdfastv1alpha1.DigestsDue:
		return "they are not recorded yet"
	case holdfastv1alpha1.DigestsRecorded:
		return "their ConfigMap is gone"
	default:
		return why
	}
}

// changes are those of one archive.
type changes struct {
	key            digest.Key
	set            *digest.Set
	read           map[string]bool // files
	seen, reported map[digest.Place]bool
	findings       []finding
}

var errManyChanges = errors.New("many changes")

// once reports whether a file of an object is there for the first time, and spelled as Velero does. Of several Velero restores
// the last one, so any other is a change, whatever it holds.
func (c *changes) once(file string) bool {
	clean, byVelero := digest.Spelled(file)
	first := !c.read[clean]
	c.read[clean] = true
	switch room := len(c.findings) < maxChanges; {
	case !byVelero && room:
		c.findings = append(c.findings, wrong("%q was added to the backup's archive later: Velero takes it for %s", file, clean))
	case !first && room:
		c.findings = append(c.findings, wrong("%s was added to the backup's archive once more later", clean))
	}
	return first && byVelero
}

func (c *changes) compare(place digest.Place, copied bool, content []byte) error {
	recorded, known := c.set.Get(place)
	c.seen[place] = c.seen[place] || !copied
	switch {
	case c.reported[place], !known && (copied || c.set.Left > 0):
	case !known:
		c.add(place, wrong("%s was added to the backup's archive later", place))
	default:
		differing, err := c.key.Differences(place, recorded, content)
		switch {
		case err != nil:
			c.add(place, wrong("%s in the backup's archive is not JSON any more", place))
		case len(differing) > 0:
			c.add(place, wrong("%s is not what was backed up: %s differs", place, strings.Join(differing, ", ")))
		case differing != nil:
			c.add(place, wrong("%s is not what was backed up", place))
		}
	}
	if len(c.findings) >= maxChanges {
		return errManyChanges
	}
	return nil
}

func (c *changes) add(place digest.Place, found finding) {
	c.reported[place] = true
	c.findings = append(c.findings, found)
}

// all returns the findings; read: the archive was read to its end.
func (c *changes) all(read bool) []finding {
	if !read {
		return c.findings
	}
	for _, place := range c.set.Places() {
		if !c.seen[place] && len(c.findings) < maxChanges {
			c.add(place, wrong("%s was removed from the backup's archive later", place))
		}
	}
	if c.set.Left > 0 {
		c.findings = append(c.findings,
			notVerified("there are no digests of %d objects of the backup: a change of them would not be found", c.set.Left))
	}
	return c.findings
}

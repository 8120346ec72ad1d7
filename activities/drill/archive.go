package drill

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
	"holdfast.dev/holdfast/k8s/digest"
	"holdfast.dev/holdfast/k8s/objectstore"
	"holdfast.dev/holdfast/k8s/shorten"
)

const (
	// maxChanges is how many changes of an archive are found: the status counts those that it does not show.
	maxChanges = 1000
	// maxChangeBytes limits one of them; maxNamed is how many fields it names, and maxFieldBytes how much of each.
	maxChangeBytes = 512
	maxNamed       = 10
	maxFieldBytes  = 63
)

var errManyChanges = errors.New("many changes")

const notFound = "a change of its archive would not be found"

// compareArchive says what in the archive is not what it was when the backup was complete, as far as there are digests of that.
func (a *Activities) compareArchive(ctx context.Context, o *objects, made *velerov1.Backup) (findings []finding, err error) {
	set, err := a.Digests.Of(ctx, made)
	if err != nil {
		return nil, err
	}
	key, err := a.Digests.Key(ctx)
	switch {
	case err != nil:
		return nil, err
	case set == nil:
		return []finding{notVerified("there are no digests of the backup (%s): %s", missing(made), notFound)}, nil
	case key == nil || !bytes.Equal(set.KeyID, key.ID()):
		return []finding{notVerified("the digests of the backup were made with another key: %s", notFound)}, nil
	}
	store, err := a.Stores.OpenForArchive(ctx, made, o.Drill.Namespace)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	changes := newChanges(key, set)
	err = store.BackupArchive(ctx, made.Name,
		func(file string) bool {
			_, copied, found := digest.PlaceOf(file, o.Drill.Namespace)
			return found && changes.once(file, copied)
		},
		func(file string, content []byte) error {
			place, copied, _ := digest.PlaceOf(file, o.Drill.Namespace)
			return changes.compare(place, copied, content)
		})
	switch {
	case err == nil:
		changes.end()
	case errors.Is(err, errManyChanges):
	case errors.Is(err, objectstore.ErrUnusable): // Velero reads on where we do not
		changes.add("%v; it could be read when the backup was complete", err)
	default:
		return nil, err
	}
	return changes.findings, nil
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
	key digest.Key
	set *digest.Set
	// read are the digests of the paths of files. objects and copies count them.
	read            map[[sha256.Size]byte]bool
	objects, copies int
	// seen and reported are places of the set.
	seen, reported map[digest.Place]bool
	findings       []finding
}

func newChanges(key digest.Key, set *digest.Set) *changes {
	return &changes{
		key: key, set: set, read: map[[sha256.Size]byte]bool{}, seen: map[digest.Place]bool{}, reported: map[digest.Place]bool{},
	}
}

// add adds a change, unless there are many.
func (c *changes) add(format string, args ...any) {
	if len(c.findings) < maxChanges {
		c.findings = append(c.findings, wrong("%s", shorten.Text(fmt.Sprintf(format, args...), maxChangeBytes)))
	}
}

// once reports whether a file of an object is there for the first time, and spelled as Velero does. Of several Velero restores
// the last one, so any other is a change, whatever it holds.
func (c *changes) once(file string, copied bool) bool {
	clean, byVelero := digest.Spelled(file)
	sum := sha256.Sum256([]byte(clean))
	first := !c.read[sum]
	c.read[sum] = true
	switch {
	case !byVelero:
		c.add("%q was added to the backup's archive later: Velero takes it for %s", file, clean)
		return false
	case !first:
		c.add("%s was added to the backup's archive once more later", clean)
		return false
	case copied:
		c.copies++
	default:
		c.objects++
	}
	return true
}

func (c *changes) compare(place digest.Place, copied bool, content []byte) error {
	recorded, known := c.set.Get(place)
	switch {
	case !known && (copied || c.set.Left > 0): // end counts them
	case !known:
		c.add("%s was added to the backup's archive later", place)
	case c.reported[place]:
	case !c.key.Same(place, recorded, content):
		c.reported[place] = true
		c.add("%s is not what was backed up%s", place, namely(c.key.Differences(place, recorded, content)))
	}
	if known && !copied {
		c.seen[place] = true
	}
	if len(c.findings) >= maxChanges {
		return errManyChanges
	}
	return nil
}

// namely names fields that differ, as far as they are known.
func namely(fields []string) string {
	if len(fields) == 0 {
		return ""
	}
	more := ""
	if excess := len(fields) - maxNamed; excess > 0 {
		fields, more = fields[:maxNamed], fmt.Sprintf(" and %d more", excess)
	}
	for i := range fields {
		fields[i] = shorten.Text(fields[i], maxFieldBytes)
	}
	return ": " + strings.Join(fields, ", ") + more + " " + map[bool]string{true: "differs", false: "differ"}[len(fields) == 1]
}

// end finds what is missing from an archive that was read to its end.
func (c *changes) end() {
	for _, place := range c.set.Places() {
		if !c.seen[place] && !c.reported[place] {
			c.add("%s was removed from the backup's archive later", place)
		}
	}
	if total := c.set.Total(); c.set.Left > 0 && c.objects != total {
		c.add("the backup's archive holds %d objects, and held %d when the backup was complete", c.objects, total)
	}
	if c.copies != c.set.Copies {
		c.add("the backup's archive holds %d copies of objects in their preferred API version, and held %d when the backup was "+
			"complete", c.copies, c.set.Copies)
	}
	if c.set.Left > 0 {
		c.findings = append(c.findings,
			notVerified("there are no digests of %d objects of the backup: a change of them would not be found", c.set.Left))
	}
}

package kubelet

import (
	"cmp"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// mounts are the places of a container that lie somewhere on this machine.
type mounts []mount

type mount struct{ inside, host string }

// newMounts sorts them: the longest path comes first, so that a mount within another one wins.
func newMounts(all ...mount) mounts {
	out := mounts(all)
	for i := range out {
		out[i].inside = path.Clean(out[i].inside)
	}
	slices.SortStableFunc(out, func(a, b mount) int { return cmp.Compare(len(b.inside), len(a.inside)) })
	return out
}

// path gives the place on this machine of a path in the container; one that lies in no mount stays as it is.
func (m mounts) path(inside string) string {
	clean := path.Clean(inside)
	for _, mount := range m {
		if rest, ok := strings.CutPrefix(clean, mount.inside); ok && (rest == "" || rest[0] == '/') {
			return filepath.Join(mount.host, rest)
		}
	}
	return inside
}

// replace puts places on this machine for the mount paths in a text. A mount path counts only as a whole: /data is in neither
// /database nor /var/data.
func (m mounts) replace(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		mount, ok := m.at(text, i)
		if !ok {
			out.WriteByte(text[i])
			i++
			continue
		}
		out.WriteString(mount.host)
		i += len(mount.inside)
	}
	return out.String()
}

func (m mounts) replaceAll(texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = m.replace(text)
	}
	return out
}

func (m mounts) at(text string, i int) (mount, bool) {
	if text[i] != '/' || (i > 0 && partOfName(text[i-1])) {
		return mount{}, false
	}
	for _, mount := range m {
		end := i + len(mount.inside)
		if strings.HasPrefix(text[i:], mount.inside) && (end == len(text) || !partOfName(text[end])) {
			return mount, true
		}
	}
	return mount{}, false
}

func partOfName(c byte) bool {
	return c == '.' || c == '-' || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
}

package fdbsim_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
)

// exact are numbers of which the value counts, not only that there is one.
var exact = []string{"SnapshotIntervalSeconds", "IntervalSeconds", "total_workers", "configured_workers", "instances_running"}

// shape turns JSON into lines of paths with their values, in the order of the keys. Of numbers it says that they are some, of an
// array's elements those that differ from the one before.
func (l *lab) shape(text string) string {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var lines []string
	require.NoError(l.t, l.walk(decoder, "", &lines), text)
	return strings.Join(lines, "\n")
}

func (l *lab) walk(decoder *json.Decoder, path string, lines *[]string) error {
	token, err := decoder.Token()
	if err != nil {
		return err
	}
	switch value := token.(type) {
	case json.Delim:
		if value == '[' {
			return l.walkArray(decoder, path, lines)
		}
		for decoder.More() {
			key, err := decoder.Token()
			if err != nil {
				return err
			}
			if err := l.walk(decoder, path+"."+l.normal(fmt.Sprint(key)), lines); err != nil {
				return err
			}
		}
		_, err := decoder.Token()
		return err
	case json.Number:
		shown := "number"
		if slices.Contains(exact, path[strings.LastIndex(path, ".")+1:]) {
			shown = value.String()
		}
		*lines = append(*lines, path+" = "+shown)
	case string:
		*lines = append(*lines, path+" = "+l.normal(value))
	default:
		*lines = append(*lines, fmt.Sprintf("%s = %v", path, value))
	}
	return nil
}

func (l *lab) walkArray(decoder *json.Decoder, path string, lines *[]string) error {
	var elements []string
	for decoder.More() {
		var element []string
		if err := l.walk(decoder, path+"[]", &element); err != nil {
			return err
		}
		elements = append(elements, strings.Join(element, "\n"))
	}
	if len(elements) == 0 {
		*lines = append(*lines, path+" = []")
	}
	if path == ".ranges" {
		slices.Sort(elements) // the files of a snapshot have no order
	}
	*lines = append(*lines, slices.Compact(elements)...)
	_, err := decoder.Token()
	return err
}

func (l *lab) object(text string) map[string]any {
	var document map[string]any
	require.NoError(l.t, json.Unmarshal([]byte(text), &document), text)
	return document
}

// compareLayers compares the part of status json that is about backups.
func (l *lab) compareLayers(recorded, ours string) {
	_, recorded, _ = strings.Cut(recorded, "\n")
	layers := l.object(recorded)["cluster.layers"]
	cluster, isMap := l.object(ours)["cluster"].(map[string]any)
	require.True(l.t, isMap)
	require.Equal(l.t, l.shapeOf(layers), l.shapeOf(cluster["layers"]))
}

// shapeOf is the shape of a decoded value; its keys are sorted.
func (l *lab) shapeOf(value any) string {
	content, err := json.Marshal(value)
	require.NoError(l.t, err)
	return l.shape(string(content))
}

// compareDocument compares what status json says of the client and of what the stand-in knows; for the rest only which keys
// there are: it is taken from a recording.
func (l *lab) compareDocument(recorded, ours string) {
	require.Equal(l.t, strings.Split(recorded, "\n")[:3], strings.Split(strings.ReplaceAll(ours, l.dir, "$LAB"), "\n")[:3], "its hand")
	was, is := l.object(recorded), l.object(ours)
	require.Equal(l.t, l.shapeOf(was["client"]), l.shapeOf(is["client"]))
	cluster, isMap := was["cluster"].(map[string]any)
	require.True(l.t, isMap)
	own, isMap := is["cluster"].(map[string]any)
	require.True(l.t, isMap)
	require.Equal(l.t, slices.Sorted(maps.Keys(cluster)), slices.Sorted(maps.Keys(own)))
	for _, key := range []string{"layers", "database_lock_state", "connection_string", "database_available"} {
		require.Equal(l.t, l.shapeOf(cluster[key]), l.shapeOf(own[key]), key)
	}
}

package turns

import "fmt"

// maxShown limits how many of a list the details show.
const maxShown = 50

// Listed is a heading and the first of a list, in Markdown; nothing if the list is empty.
func Listed[T any](heading string, list []T, line func(T) string) string {
	if len(list) == 0 {
		return ""
	}
	text := "\n" + heading + "\n\n"
	for i, each := range list {
		if i == maxShown {
			return text + fmt.Sprintf("- and %d more\n", len(list)-i)
		}
		text += line(each) + "\n"
	}
	return text
}

package turns

import "fmt"

// Shown is how many of a list the details show.
const Shown = 50

// Listed is a heading and the first of a list of so many, in Markdown; nothing if there is none.
func Listed[T any](heading string, list []T, total int, line func(T) string) string {
	if len(list) == 0 {
		return ""
	}
	text := "\n" + heading + "\n\n"
	for i, each := range list {
		if i == Shown {
			break
		}
		text += line(each) + "\n"
	}
	if total > Shown {
		text += fmt.Sprintf("- and %d more\n", total-Shown)
	}
	return text
}

// Besides says how many wait who are not carried; nothing if there is nobody.
func (q *Queue[K]) Besides() string {
	if q.Beyond.Count == 0 {
		return ""
	}
	return fmt.Sprintf("\nAbout %d more wait, as their objects say. They come in when there is room.\n", q.Beyond.Count)
}

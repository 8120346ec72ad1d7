package turns

import "fmt"

// Shown is how many of a list the details show.
const Shown = 50

// Each returns the list with each element as another type has it; nil if it is empty.
func Each[From, To any](list []From, as func(From) To) []To {
	var each []To
	for _, element := range list {
		each = append(each, as(element))
	}
	return each
}

// Listed returns, in Markdown, a heading and the first of a list of total entries; empty if there are none.
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

// BeyondText says how many members wait that are not carried; empty if there are none.
func (q *Queue[K]) BeyondText() string {
	if q.Beyond.Count == 0 {
		return ""
	}
	return fmt.Sprintf("\nAbout %d more wait, as their objects say. They enter the queue when there is room.\n", q.Beyond.Count)
}

package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// NewWriter returns out; if that is a terminal, one through which nothing steers it.
func NewWriter(out io.Writer) io.Writer {
	if file, is := out.(*os.File); is && term.IsTerminal(int(file.Fd())) {
		return &harmless{Writer: out}
	}
	return out
}

// harmless writes a question mark for each byte that may begin to steer a terminal: a control character of ASCII, or the second
// byte of another one.
type harmless struct {
	io.Writer
	last byte
}

func (h *harmless) Write(text []byte) (int, error) {
	shown := make([]byte, len(text))
	for i, each := range text {
		shown[i] = each
		if (each < ' ' && each != '\n' && each != '\t') || each == 0x7f || (h.last == 0xc2 && each >= 0x80 && each < 0xa0) {
			shown[i] = '?'
		}
		h.last = each
	}
	return h.Writer.Write(shown)
}
